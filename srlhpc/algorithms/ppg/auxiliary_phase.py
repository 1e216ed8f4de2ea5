"""The auxiliary phase: the policy's features learn the value of all kept records, and the policy stays.

Letters: T records of a fragment (burn-in included), M columns of all kept batches, F numbers of a distribution.

Collective calls, the same on all trainers: at the beginning the valid counts of every minibatch with the error of the
auxiliary value; per minibatch the gradients (several trainers only); at the end the sums of the last epoch.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch, Context
from srlhpc.algorithms.device_numbers import to_host_list
from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.algorithms.gradient_step import check_steps, gradient_step
from srlhpc.algorithms.ppg.kept_arrays import TARGETS
from srlhpc.algorithms.ppg.loss import SUMS, Loss, auxiliary_loss
from srlhpc.algorithms.ppg.settings import Settings
from srlhpc.algorithms.ppo.minibatches import Rows, Sampler, sampler, seen
from srlhpc.algorithms.ppo.warm_up import warmed_up
from srlhpc.policies.phasic import PhasicActorCritic
from srlhpc.rl.losses import value_loss
from srlhpc.specs.schedule import value_at

METRICS = ("auxiliary_value_loss_before", *SUMS)
"""What a phase tells: the auxiliary value's loss before it, and the means of its last epoch."""


@dataclass
class AuxiliaryRows(Rows):
    """Records of one gradient step."""

    targets: Tensor
    """In units of the return."""
    old: Tensor
    """Numbers of the distributions at the beginning of the phase."""


class _Before(NamedTuple):
    """What the parameters at the beginning say of all kept records."""

    numbers: Tensor
    """What the distributions depend on, float32 `[T, M, F]` on the host; 0 in chunks without a valid record."""
    error: Tensor
    """Sum of the auxiliary value's loss over the valid records, float64 `[1]`."""


class AuxiliaryPhase:
    """Adam on all that is trained, with moments of its own.

    Args:
        settings: of the rule.
        trained: the policy, and the value beside it.
        policy_adam: what moves the parameters of the policy in its own phases.
        context: of the trainer.
    """

    def __init__(self, settings: Settings, trained: PhasicActorCritic, policy_adam: FlatAdam, context: Context) -> None:
        self._settings, self._trained, self._context = settings, trained, context
        epsilon, decay = settings.adam_epsilon, settings.weight_decay
        self.policy_adam = policy_adam.twin(epsilon=epsilon, weight_decay=decay)
        """What moves the policy's parameters, those of the true value included."""
        self.head_adam = FlatAdam(trained.auxiliary_head, epsilon=epsilon, weight_decay=decay)
        """What moves the auxiliary head."""

    def run(self, kept: Batch, batches: int) -> Generator[None, None, list[float]]:
        """Learns from all kept records; yields between minibatches.

        Args:
            kept: all batches as one, on the host.
            batches: of how many it is made.

        Returns:
            The numbers of `METRICS`, in their order.

        Raises:
            DivergedError: a loss or norm is not finite; parameters have moved.
        """
        reducer, device = self._context.reducer, self._context.device
        shares = sampler(kept, batches * self._settings.auxiliary_minibatches)
        generator = self._context.generator(kept.version)
        epochs = [shares.epoch(generator) for _ in range(self._settings.auxiliary_epochs)]
        before = yield from self._before(kept, shares)
        counts = torch.cat([shares.valid_counts(minibatches) for minibatches in epochs])
        known = torch.cat([counts.to(device), before.error])
        yield from reducer.sum(known)
        *numbers, error = yield from to_host_list(known)
        valid, counts_left = max(sum(numbers[: len(epochs[0])]), 1.0), iter(numbers)

        rate = value_at(self._settings.auxiliary_learning_rate, kept.steps)
        sums = torch.zeros(len(SUMS), dtype=torch.float64, device=device)
        for minibatches in epochs:
            sums.zero_()
            checks = []
            for indices in minibatches:
                rows = self._rows(kept, shares, indices, before.numbers)
                loss = self._loss(rows)
                step = gradient_step(
                    loss.total,
                    next(counts_left),
                    self.policy_adam,
                    self.head_adam,
                    reducer=reducer,
                    learning_rate=rate,
                    max_gradient_norm=self._settings.max_gradient_norm,
                )
                checks.append((yield from step))
                sums += loss.sums
                yield
            check_steps((yield from to_host_list(torch.cat(checks))))
        yield from reducer.sum(sums)
        return [number / valid for number in (error, *(yield from to_host_list(sums)))]

    def _before(self, kept: Batch, shares: Sampler) -> Generator[None, None, _Before]:
        device = self._context.device
        found: Tensor | None = None
        error = torch.zeros(1, dtype=torch.float64, device=device)
        for indices in shares.in_order():
            selected = shares.take(indices)
            rows = Rows(**seen(kept, selected)).to(device)
            targets = self._trained.policy.normalize_values(selected.of(kept.fields[TARGETS]).to(device))
            with torch.no_grad(), self._context.arithmetic():
                # Burn-in is seen as any other record, and counts in nothing.
                said = self._trained.evaluate(rows.observations, rows.state, rows.first, action_masks=rows.action_masks)
                error += value_loss(said.auxiliary_values, targets, rows.valid)
            numbers = said.distribution.numbers().cpu()
            if found is None:
                found = torch.zeros(*kept.valid.shape, numbers.shape[-1])
            selected.put(numbers, found)
            yield
        assert found is not None
        return _Before(found, error)

    def _rows(self, kept: Batch, shares: Sampler, indices: Tensor, old: Tensor) -> AuxiliaryRows:
        selected = shares.take(indices)
        rows = AuxiliaryRows(
            **seen(kept, selected), targets=selected.of(kept.fields[TARGETS]), old=selected.of(old)
        ).to(self._context.device)
        with self._context.arithmetic():
            return warmed_up(self._trained.policy, rows, kept.burn_in_steps)

    def _loss(self, rows: AuxiliaryRows) -> Loss:
        with self._context.arithmetic():
            said = self._trained.evaluate(rows.observations, rows.state, rows.first, action_masks=rows.action_masks)
            return auxiliary_loss(
                said,
                rows.old,
                self._trained.policy.normalize_values(rows.targets),
                rows.valid,
                kl_coefficient=self._settings.kl_coefficient,
                true_value_coefficient=self._settings.true_value_coefficient,
            )
