"""One update of V-trace: one gradient step, or a few on other fragments each.

Letters: T trained records of a fragment, B columns of this trainer.

Collective calls, the same on all trainers: per step the gradients with what its metrics are made of; at the end the
sums of the normalisers, at a batch's first use.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, DivergedError, Update
from srlhpc.algorithms.device_numbers import to_host_list
from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.algorithms.target_network import TargetNetwork
from srlhpc.algorithms.vtrace.loss import SUMS, WEIGHED, Coefficients, Loss, evaluated, vtrace_loss
from srlhpc.algorithms.vtrace.settings import Settings
from srlhpc.data.blocks import FINAL_STATE, STATE
from srlhpc.policies.contracts import ActorCriticPolicy
from srlhpc.specs.schedule import value_at

_OLD = "old_policy"
_LEAST = 1e-6
"""Stands for a weight of 0, where no record is valid."""


class VTraceRule(Algorithm):
    """Actor-critic with V-trace of an actor-critic policy."""

    def __init__(self, settings: Settings, policy: ActorCriticPolicy, context: Context) -> None:
        self._settings = settings
        self._policy = policy
        self._context = context
        self._optimizer = FlatAdam(policy, epsilon=settings.adam_epsilon, weight_decay=settings.weight_decay)
        self._old = None if settings.clip_ratio is None else TargetNetwork(policy, self._optimizer)

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        before, old = self._optimizer.snapshot(), None if self._old is None else self._old.parameters.clone()
        if self._old is not None and batch.version % self._settings.old_policy_updates == 0:
            self._old.copy()
        try:
            return Update((yield from self._update(batch)))
        except DivergedError:
            self._optimizer.restore(before)
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
        steps: list[Tensor] = []
        returns: list[Tensor] = []
        observed: list[Tensor] = []
        for part in self._parts(batch):
            with self._autocast():
                loss = vtrace_loss(self._policy, part, coefficients, self._old_log_probs(part))
            steps.append((yield from self._step(loss, coefficients)))
            if batch.is_first_use:
                return_sums, observation_sums = self._normalizer_sums(part, loss.targets)
                returns.append(return_sums)
                observed.append(observation_sums)
            yield
        if batch.is_first_use:
            yield from self._update_normalizers(torch.stack(returns).sum(0), torch.stack(observed).sum(0))
        *sums, valid, weight, _, norm, deviation = yield from to_host_list(
            torch.cat([torch.stack(steps).sum(0), steps[0][-2:-1]])
        )
        parts = {name: weight if name in WEIGHED else valid for name in SUMS}
        return {name: total / max(parts[name], _LEAST) for name, total in zip(SUMS, sums, strict=True)} | {
            "ratio_max_deviation_first": deviation,
            "gradient_norm": norm / len(steps),
            "learning_rate": coefficients.learning_rate,
        }

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        """The batch, or equal shares of its columns in an order from the trainer's seed and the version alone."""
        if self._settings.minibatches == 1:
            yield batch
            return
        seed = np.random.SeedSequence((self._context.seed, batch.version)).generate_state(1, np.uint64).item()
        order = torch.randperm(batch.rewards.shape[1], generator=torch.Generator().manual_seed(seed))
        for indices in order.to(batch.rewards.device).chunk(self._settings.minibatches):
            fields = {
                name: tensor.index_select(0 if name.startswith((STATE, FINAL_STATE)) else 1, indices)
                for name, tensor in batch.fields.items()
            }
            yield replace(batch, fields=fields)

    def _old_log_probs(self, part: Batch) -> Tensor | None:
        if self._old is None:
            return None
        with torch.no_grad():
            return evaluated(self._old.module, part)[1]

    def _step(self, loss: Loss, coefficients: Coefficients) -> Generator[None, None, Tensor]:
        """One gradient step; returns `Loss.sums` over all trainers, the mean of their deviations, and the norm.

        Raises:
            DivergedError: the loss or the norm is not finite; the step is not made.
        """
        gradients = self._optimizer.gradients
        gradients.zero_()
        torch.autograd.backward(loss.total)
        numbers = torch.cat([loss.sums, loss.max_deviation.reshape(1)])
        if self._context.reducer.trainers > 1:
            # The sums travel with the gradients, in the same collective call.
            flat = torch.cat([gradients, numbers])
            yield from self._context.reducer.sum(flat)
            gradients.copy_(flat[: len(gradients)])
            numbers = flat[len(gradients) :]
            numbers[-1] /= self._context.reducer.trainers
        # By what the valid records of all trainers weigh: the gradient is that of the mean loss.
        gradients.div_(numbers[len(SUMS) + 1].clamp(min=_LEAST))
        norm = gradients.norm()
        checks = dict(
            zip(("loss", "gradient norm"), (yield from to_host_list(torch.stack([numbers[0], norm]))), strict=True)
        )
        for name, number in checks.items():
            if not math.isfinite(number):
                raise DivergedError(f"the {name} is {number}")
        self._optimizer.step(coefficients.learning_rate, norm, self._settings.max_gradient_norm)
        return torch.cat([numbers, norm.reshape(1)])

    def _normalizer_sums(self, part: Batch, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Sums for the running statistics of returns, and of observations and whatever else is normalised."""
        burn_in, steps = part.burn_in_steps, len(part.rewards)
        observations = {key: array[burn_in:steps] for key, array in part.observations.items()}
        valid = part.valid[burn_in:]
        return self._policy.return_sums(targets, valid), self._policy.normalizer_sums(observations, targets, valid)

    def _update_normalizers(self, return_sums: Tensor, observation_sums: Tensor) -> Generator[None]:
        flat = torch.cat([return_sums, observation_sums])
        if not len(flat):
            return
        yield from self._context.reducer.sum(flat)
        if len(return_sums):
            self._policy.update_returns(flat[: len(return_sums)])
        if len(observation_sums):
            self._policy.update_normalizers(flat[len(return_sums) :])

    def _coefficients(self, steps: int) -> Coefficients:
        settings = self._settings
        return Coefficients(
            learning_rate=value_at(settings.learning_rate, steps),
            gamma=settings.gamma,
            trace_lambda=settings.trace_lambda,
            rho_clip=settings.rho_clip,
            c_clip=settings.c_clip,
            policy_rho_clip=settings.policy_rho_clip,
            clip_ratio=None if settings.clip_ratio is None else value_at(settings.clip_ratio, steps),
            value=settings.value_coefficient,
            entropy=value_at(settings.entropy_coefficient, steps),
            lag_exponent=settings.lag_exponent,
        )

    def _autocast(self) -> AbstractContextManager[object]:
        if self._context.autocast is None:
            return nullcontext()
        return torch.autocast(self._context.device.type, dtype=self._context.autocast)
