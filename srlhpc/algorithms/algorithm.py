"""The algorithm contract: how a policy learns from one batch.

Letters: T records of a fragment (burn-in included), B columns (fragments) of a trainer's batch.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from srlhpc.algorithms.stacked_fields import StackedFields, at
from srlhpc.data.blocks import CHUNK_STATE, FINAL_STATE, OBSERVATION, OUTPUT, STATE
from srlhpc.environment import ArraySpec
from srlhpc.errors import KnownError


@dataclass
class Batch:
    """Fragments of one update on the trainer's device, time-major. Burn-in records are the first `burn_in_steps`."""

    fields: Mapping[str, Tensor]
    """Every field of the batch's blocks (data/blocks.py) with environments and agents as one axis B: `[T, B, ...]`, of
    what is also known of the bootstrap observation `[T + 1, B, ...]`. Those that a rule declares are here by name.
    Where agents are learnt from together (`Needs.joint`), B counts environments, and what agents have of a record is
    `[T, B, A, ...]`."""
    burn_in_steps: int
    version: int
    """The trainer's version when the update starts."""
    steps: int
    """Trained steps of the policy before this update, over all trainers (drives schedules)."""
    is_first_use: bool = True
    """False: an earlier update learnt from the same batch (`batch.uses`)."""
    after: int = 0
    """Last records that are there for the sums of those before them and are not trained (`Needs.after`); 0 in streams.
    Trained are records `burn_in_steps .. T - after`."""
    weights: Tensor | None = None
    """Importance weights, float32 `[B]`, at most 1 over the global batch; None: all weigh 1."""

    @cached_property
    def observations(self) -> dict[str, Tensor]:
        """Key to `[T + 1, B, ...]`; the last entry is the bootstrap."""
        return self._named(OBSERVATION)

    def observations_at(self, places: Tensor) -> dict[str, Tensor]:
        """The observations at places t * B + b, int64 `[N]`: key to `[N, ...]`.

        Where the batch holds the frames of stacks, no other stacks are made, as they are where `observations` is read.
        """
        names = self._names(OBSERVATION)
        if isinstance(self.fields, StackedFields):
            seen = [self.fields.at(name, places) for name in names]
        else:
            seen = [at(self.fields[name], places) for name in names]
        return {name.removeprefix(OBSERVATION): rows for name, rows in zip(names, seen, strict=True)}

    @property
    def actions(self) -> Tensor:
        """`[T, B, ...]`."""
        return self.fields["actions"]

    @property
    def log_probs(self) -> Tensor:
        """Log-probabilities of the behaviour policy, float32 `[T, B]`."""
        return self.fields["log_probs"]

    @property
    def rewards(self) -> Tensor:
        """float32 `[T, B]`."""
        return self.fields["rewards"]

    @property
    def terminated(self) -> Tensor:
        """bool `[T, B]`."""
        return self.fields["terminated"]

    @property
    def truncated(self) -> Tensor:
        """bool `[T, B]`."""
        return self.fields["truncated"]

    @property
    def first(self) -> Tensor:
        """bool `[T + 1, B]`."""
        return self.fields["first"]

    @property
    def valid(self) -> Tensor:
        """Whether the record counts, bool `[T, B]`; in streams false in burn-in too."""
        return self.fields["valid"]

    @property
    def alive(self) -> Tensor:
        """Whether the agent is in the game, bool `[T, B]`; where agents are learnt from together `[T + 1, B, A]`, and
        where they take turns, `[T + 1, B]`, whether it does not wait either."""
        return self.fields["alive"]

    @property
    def versions(self) -> Tensor:
        """Versions of the behaviour policy, int64 `[T, B]`."""
        return self.fields["versions"]

    @property
    def cut(self) -> Tensor:
        """Only of replay, and of agents that take turns: whether the record is the last that is known of its sequence,
        bool `[T, B]`. Sums stop there and bootstrap from the observation that follows, which all behind it repeat;
        nothing behind it is valid."""
        return self.fields["cut"]

    @property
    def action_masks(self) -> Tensor | None:
        """bool `[T + 1, B, mask_size]`, or None."""
        return self.fields.get("action_masks")

    @cached_property
    def outputs(self) -> dict[str, Tensor]:
        """Declared outputs of the behaviour policy, `[T, B, ...]`."""
        return self._named(OUTPUT)

    @cached_property
    def state(self) -> dict[str, Tensor]:
        """Recurrent state before t = 0, `[B, ...]`; empty without memory."""
        return self._named(STATE)

    @cached_property
    def chunk_states(self) -> dict[str, Tensor]:
        """Recurrent states before all but the first of C equal chunks, `[C - 1, B, ...]`; empty if C = 1."""
        return self._named(CHUNK_STATE)

    @cached_property
    def final_state(self) -> dict[str, Tensor]:
        """Recurrent state before the bootstrap observation, `[B, ...]`."""
        return self._named(FINAL_STATE)

    def _named(self, prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): self.fields[name] for name in self._names(prefix)}

    def _names(self, prefix: str) -> list[str]:
        return [name for name in self.fields if name.startswith(prefix)]


@dataclass(frozen=True)
class Update:
    """What one update brought."""

    metrics: Mapping[str, float]
    """Name to number, equal on all trainers."""
    feedback: Tensor | None = None
    """float32 `[B]`: what the rule says of each row of this trainer's batch, such as a priority; only of rules that
    declare it (`Needs.gives_feedback`)."""
    publishes: bool = True
    """Whether policy servers shall act with the new parameters, equal on all trainers. An update that is not published
    counts as a version all the same, with which nobody acts."""


class Reducer(Protocol):
    """Sums over the policy's trainers; one trainer sums over itself."""

    trainers: int

    def sum(self, tensor: Tensor) -> Generator[None]:
        """Replaces `tensor` by its sum over all trainers; yields while the others are not ready."""


def sum_together(reducer: Reducer, *tensors: Tensor) -> Generator[None]:
    """Replaces flat tensors by their sums over all trainers, in one collective call; one trainer makes none."""
    if reducer.trainers > 1:
        flat = torch.cat(tensors)
        yield from reducer.sum(flat)
        for tensor, total in zip(tensors, torch.split(flat, [len(tensor) for tensor in tensors]), strict=True):
            tensor.copy_(total)


@dataclass(frozen=True)
class Context:
    """What an algorithm may use beside its settings and its policy."""

    reducer: Reducer
    device: torch.device
    autocast: torch.dtype | None
    """bfloat16 for the network's arithmetic, or None."""
    seed: int
    """Seed of this trainer; together with the version it gives all randomness of an update."""
    columns: int = 1
    """Columns of the policy in the whole run, as `AlgorithmSettings.explore` counts them."""
    joint_agents: int = 1
    """Agents that are learnt from together: A of a rule's batches that declares it (`Needs.joint`)."""
    batch: Mapping[str, ArraySpec] = field(default_factory=dict)
    """All arrays of this trainer's batches, by name: whole shapes, as in `Batch.fields`."""

    def arithmetic(self) -> AbstractContextManager[object]:
        """Where networks compute in what `autocast` says.

        What has gradients and what has none take a context each: casts that were made without gradients are kept in it.
        """
        return nullcontext() if self.autocast is None else torch.autocast(self.device.type, dtype=self.autocast)

    def generator(self, version: int) -> torch.Generator:
        """The randomness of one update, on the host."""
        seed = np.random.SeedSequence((self.seed, version)).generate_state(1, np.uint64).item()
        return torch.Generator().manual_seed(seed)


class DivergedError(KnownError, RuntimeError):
    """The loss or a gradient is not a number; the parameters are those before the update."""

    kind = "diverged"


def check_finite(numbers: Mapping[str, float]) -> None:
    """Looks at losses and norms of gradients by name, before a step is made with them.

    Raises:
        DivergedError: the first that is not finite, by its name.
    """
    for name, number in numbers.items():
        if not math.isfinite(number):
            raise DivergedError(f"the {name.replace('_', ' ')} is {number}")


class Algorithm(ABC):
    """One learning rule with its optimiser."""

    @abstractmethod
    def update(self, batch: Batch) -> Generator[None, None, Update]:
        """Learns from one batch; yields at least once between minibatches and while other trainers are awaited.

        Collective calls are the same in number and order on all trainers, whatever the data. Normaliser statistics take
        in the batch after the last epoch of its first use.

        Raises:
            DivergedError: the loss or the gradient norm is not finite on any trainer.
        """

    @abstractmethod
    def state(self) -> Mapping[str, Tensor]:
        """Optimiser state and whatever else the next update depends on, as named tensors."""

    @abstractmethod
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes back what `state` gave; raises ValueError if names or shapes differ."""
