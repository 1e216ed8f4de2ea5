"""One update of V-trace: one gradient step, or a few on other fragments each.

Letters: T trained records of a fragment, B columns of this trainer.

Collective calls, the same on all trainers: at a batch's first use the sums of the returns, where their scale moves
before the targets; per step the gradients with what its metrics are made of; after the first use the normaliser sums.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, DivergedError, Update
from srlhpc.algorithms.objectives import LEAST_WEIGHT, Means, Objective, mean_step
from srlhpc.algorithms.target_network import TargetNetwork
from srlhpc.algorithms.undoing import undone_if_diverged
from srlhpc.algorithms.vtrace.loss import (
    OF_FRAGMENTS,
    WEIGHED,
    Coefficients,
    Loss,
    evaluated,
    vtrace_loss,
    warmed_up,
)
from srlhpc.algorithms.vtrace.settings import Settings
from srlhpc.policies.contracts import ActorCriticPolicy
from srlhpc.specs.schedule import value_at

_OLD = "old_policy"
_VALID = "valid"
_DEVIATION = "ratio_max_deviation_first"


class VTraceRule(Algorithm):
    """Actor-critic with V-trace of an actor-critic policy."""

    def __init__(self, settings: Settings, policy: ActorCriticPolicy, context: Context) -> None:
        self._settings = settings
        self._policy = policy
        self._context = context
        self._objective = Objective(None, policy, settings.learning_rate, settings.adam_epsilon, settings.weight_decay)
        self._optimizer = self._objective.optimizer
        self._old = None if settings.clip_ratio is None else TargetNetwork(policy, self._optimizer)

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        old = None if self._old is None else self._old.parameters.clone()
        if self._old is not None and batch.version % self._settings.old_policy_updates == 0:
            self._old.copy()
        try:
            with undone_if_diverged(self._policy, self._optimizer):
                return Update((yield from self._update(batch)))
        except DivergedError:
            if self._old is not None and old is not None:
                self._old.load(old)
            raise

    def state(self) -> Mapping[str, Tensor]:
        old = {} if self._old is None else {_OLD: self._old.parameters}
        return {**self._optimizer.state(), **old}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        if self._old is not None:
            if _OLD not in state:
                raise ValueError(f"state of vtrace with clip_ratio has no {_OLD}")
            self._old.load(state[_OLD])
        self._optimizer.load_state({name: tensor for name, tensor in state.items() if name != _OLD})

    def _update(self, batch: Batch) -> Generator[None, None, dict[str, float]]:
        coefficients = self._coefficients(batch.steps)
        parts = list(self._parts(batch))
        if batch.is_first_use:
            yield from self._update_returns(parts, coefficients)
        steps: list[Means] = []
        seen: list[Tensor] = []
        for part in parts:
            ready, old = self._ready(part)
            with self._context.arithmetic():
                loss = vtrace_loss(self._policy, ready, coefficients, old)
            steps.append((yield from self._step(loss, batch.steps)))
            seen.append(self._policy.normalizer_sums(_trained(ready), loss.targets, ready.valid))
            yield
        if batch.is_first_use and len(seen[0]):
            sums = torch.stack(seen).sum(0)
            yield from self._context.reducer.sum(sums)
            self._policy.update_normalizers(sums)
        return _metrics(steps, self._context.reducer.trainers)

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        """The batch, or equal shares of its columns in an order from the trainer's seed and the version alone."""
        if self._settings.minibatches == 1:
            yield batch
            return
        device = batch.rewards.device
        # Pinned, so that the copy does not wait for what the device computes.
        order = torch.randperm(
            batch.rewards.shape[1],
            generator=self._context.generator(batch.version),
            pin_memory=device.type == "cuda",
        )
        for indices in order.to(device, non_blocking=True).chunk(self._settings.minibatches):
            fields = {
                name: tensor.index_select(0 if name.startswith(OF_FRAGMENTS) else 1, indices)
                for name, tensor in batch.fields.items()
            }
            yield replace(batch, fields=fields)

    def _ready(self, part: Batch) -> tuple[Batch, Tensor | None]:
        """The part behind its burn-in, and the log-probabilities of its actions by the old policy, if there is one."""
        old = None
        if self._old is not None:
            with torch.no_grad(), self._context.arithmetic():
                old = evaluated(self._old.module, warmed_up(self._old.module, part))[1]
        with self._context.arithmetic():
            return warmed_up(self._policy, part), old

    def _update_returns(self, parts: list[Batch], coefficients: Coefficients) -> Generator[None]:
        """Statistics of returns that move before targets are scaled by them: one more pass, without gradients."""
        if not len(self._policy.return_sums(parts[0].rewards, parts[0].valid)):
            return
        sums = []
        for part in parts:
            ready, old = self._ready(part)
            with torch.no_grad(), self._context.arithmetic():
                targets = vtrace_loss(self._policy, ready, coefficients, old).targets
            sums.append(self._policy.return_sums(targets, ready.valid))
            yield
        total = torch.stack(sums).sum(0)
        yield from self._context.reducer.sum(total)
        self._policy.update_returns(total)

    def _step(self, loss: Loss, steps: int) -> Generator[None, None, Means]:
        self._objective.differentiate(loss.total)
        return (
            yield from mean_step(
                [self._objective],
                loss.sums | {_VALID: loss.valid, _DEVIATION: loss.max_deviation},
                loss.weight,
                reducer=self._context.reducer,
                steps=steps,
                max_gradient_norm=self._settings.max_gradient_norm,
            )
        )

    def _coefficients(self, steps: int) -> Coefficients:
        settings = self._settings
        return Coefficients(
            gamma=settings.gamma,
            trace_lambda=settings.trace_lambda,
            rho_clip=settings.rho_clip,
            c_clip=min(1.0, settings.rho_clip) if settings.c_clip is None else settings.c_clip,
            policy_rho_clip=settings.policy_rho_clip,
            clip_ratio=None if settings.clip_ratio is None else value_at(settings.clip_ratio, steps),
            value=settings.value_coefficient,
            entropy=value_at(settings.entropy_coefficient, steps),
            lag_exponent=settings.lag_exponent,
        )


def _trained(batch: Batch) -> dict[str, Tensor]:
    """Observations of the records alone, without the bootstrap."""
    return {key: array[:-1] for key, array in batch.observations.items()}


def _metrics(steps: list[Means], trainers: int) -> dict[str, float]:
    """Metrics of an update: means over the records of all its steps, but the deviation is that of the first step."""
    sums = {name: math.fsum(step.sums[name] for step in steps) for name in steps[0].sums}
    weight, valid = math.fsum(step.weight for step in steps), sums.pop(_VALID)
    deviation = steps[0].sums[_DEVIATION] / trainers
    del sums[_DEVIATION]
    means = {name: total / (max(weight if name in WEIGHED else valid, LEAST_WEIGHT)) for name, total in sums.items()}
    norm = math.fsum(step.others["gradient_norm"] for step in steps) / len(steps)
    return means | steps[0].others | {"gradient_norm": norm, _DEVIATION: deviation}
