"""A trainer's batches from a tiny environment in one process, without any role or stream."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch, Context, Reducer, Update
from srlhpc.environment import Environment, Kind, KindStep
from srlhpc.policies.policy import NO_EXPLORATION, Exploration, Policy


class OwnSum:
    """The reducer of a single trainer; counts its calls."""

    trainers = 1

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def sum(self, tensor: Tensor) -> Generator[None]:
        self.sizes.append(tensor.numel())
        yield


class SharedSum:
    """The reducer of several trainers that run in turn: sums when all have come to the same call."""

    def __init__(self, trainers: int) -> None:
        self.trainers = trainers
        self.sizes: list[int] = []
        self._waiting: list[Tensor] = []
        self._done = 0

    def sum(self, tensor: Tensor) -> Generator[None]:
        assert all(tensor.shape == other.shape for other in self._waiting), "trainers are at different calls"
        self._waiting.append(tensor)
        target = self._done + 1
        if len(self._waiting) == self.trainers:
            total = torch.stack(self._waiting).sum(0)
            for waiting in self._waiting:
                waiting.copy_(total)
            self._waiting = []
            self._done = target
            self.sizes.append(tensor.numel())
        while self._done < target:
            yield


def context(
    seed: int = 0, reducer: Reducer | None = None, autocast: torch.dtype | None = None, device: str = "cpu"
) -> Context:
    return Context(reducer=reducer or OwnSum(), device=torch.device(device), autocast=autocast, seed=seed)


def moved(batch: Batch, device: torch.device) -> Batch:
    """The same batch on a device."""

    return replace(batch, fields={name: tensor.to(device) for name, tensor in batch.fields.items()})


def changed(batch: Batch, **fields: Tensor) -> Batch:
    """The batch with other tensors in some fields."""
    return replace(batch, fields=batch.fields | fields)


def updated(generator: Generator[None, None, Update]) -> Update:
    """Runs an update to its end."""
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            update: Update = stop.value
            return update


def finish(generator: Generator[None, None, Update]) -> Mapping[str, float]:
    """Runs an update to its end; returns its metrics."""
    return updated(generator).metrics


def finish_together(generators: list[Generator[None, None, Update]]) -> list[Mapping[str, float]]:
    """Runs the updates of several trainers in turn, a step each; returns their metrics."""
    results: dict[int, Mapping[str, float]] = {}
    while len(results) < len(generators):
        for index, generator in enumerate(generators):
            if index not in results:
                try:
                    next(generator)
                except StopIteration as stop:
                    results[index] = stop.value.metrics
    return [results[index] for index in range(len(generators))]


class Collector:
    """Plays an environment of one kind with a policy and cuts what happens into batches of fragments."""

    def __init__(
        self,
        environment: Environment,
        policy: Policy,
        *,
        steps: int,
        seed: int,
        burn_in: int = 0,
        chunks: int = 1,
        exploration: Exploration = NO_EXPLORATION,
    ) -> None:
        self._exploration = exploration
        (self._kind,) = environment.spaces.kinds
        self._environment = environment
        self._policy = policy
        self._steps = steps
        self._burn_in = burn_in
        self._chunks = chunks
        self._generator = torch.Generator().manual_seed(seed)
        self._now = environment.reset(seed).kinds[self._kind.name]
        self._state = policy.initial_state(environment.num_environments * len(self._kind.agents))
        self._records: list[dict[str, Tensor]] = []
        self._states: list[Mapping[str, Tensor]] = []
        self.version = 0
        self.trained_steps = 0

    def batch(self) -> Batch:
        """The next `steps` records after those of the batch before, with `burn_in` of those in front."""
        length = self._steps + self._burn_in
        keep = self._burn_in if len(self._records) else 0
        self._records, self._states = self._records[-keep:] if keep else [], self._states[-keep:] if keep else []
        while len(self._records) < length:
            self._play()
        stacked = {name: torch.stack([record[name] for record in self._records]) for name in self._records[0]}
        valid = stacked["valid"].clone()
        valid[: self._burn_in] = False
        last = _tensors(self._kind, self._now)
        names = [name for name in stacked if name in last]
        whole = {name: torch.cat([stacked[name], last[name].unsqueeze(0)]) for name in names}
        fields = stacked | whole | {"valid": valid, "versions": torch.full(valid.shape, self.version)}
        states = (("state.", self._states[0]), ("chunk_state.", self._chunk_states()), ("final_state.", self._state))
        batch = Batch(
            fields | {prefix + name: tensor for prefix, state in states for name, tensor in state.items()},
            burn_in_steps=self._burn_in,
            version=self.version,
            steps=self.trained_steps,
        )
        self.version += 1
        self.trained_steps += self._steps * len(valid[0])
        return batch

    def _chunk_states(self) -> dict[str, Tensor]:
        length = self._steps // self._chunks
        later = self._states[length::length] if self._chunks > 1 else []
        return {name: torch.stack([state[name] for state in later]) for name in later[0]} if later else {}

    def _play(self) -> None:
        record = _tensors(self._kind, self._now)
        observations = {name[4:]: array for name, array in record.items() if name.startswith("obs.")}
        acted = self._policy.act(
            observations,
            self._state,
            record["first"],
            action_masks=record.get("action_masks"),
            generator=self._generator,
            exploration=self._exploration,
        )
        self._states.append(self._state)
        self._state = acted.state
        shape = (self._environment.num_environments, len(self._kind.agents), *self._kind.actions.array.shape)
        step = self._environment.step({self._kind.name: acted.actions.numpy().reshape(shape)})
        self._now = step.kinds[self._kind.name]
        record |= {f"out.{name}": array for name, array in acted.outputs.items()}
        record |= {"actions": acted.actions, "log_probs": acted.log_probs}
        for name in ("rewards", "terminated", "truncated"):
            record[name] = torch.from_numpy(np.array(getattr(self._now, name))).flatten()
        self._records.append(record)


def _tensors(kind: Kind, step: KindStep) -> dict[str, Tensor]:
    arrays = {f"obs.{key}": array for key, array in step.observations.items()}
    arrays |= {"first": step.first, "valid": step.valid}
    if step.action_masks is not None:
        arrays["action_masks"] = step.action_masks
    return {name: torch.from_numpy(np.array(array)).flatten(0, 1) for name, array in arrays.items()}
