"""One PPO update, step by step, with its collective calls.

Letters: T records of a fragment, B columns of this trainer.

Collective calls, the same on all trainers: batch moments with the valid counts of every minibatch and, where their
scale moves before the targets, the sums of the returns; per minibatch the gradients (several trainers only); per epoch
the loss sums; at the end the normaliser sums.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, DivergedError
from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.algorithms.ppo.loss import SUMS, Coefficients, Loss, ppo_loss
from srlhpc.algorithms.ppo.minibatches import Minibatch, Sampler, Targets, sampler
from srlhpc.algorithms.ppo.settings import Settings
from srlhpc.algorithms.ppo.statistics import BATCH_SUMS, BatchStatistics, batch_statistics, batch_sums
from srlhpc.policies.policy import Policy
from srlhpc.rl.returns import gae
from srlhpc.specs.modules import value_at


class Ppo(Algorithm):
    """Proximal policy optimisation of an actor-critic policy."""

    def __init__(self, settings: Settings, policy: Policy, context: Context) -> None:
        self._settings = settings
        self._policy = policy
        self._context = context
        self._optimizer = FlatAdam(policy, epsilon=settings.adam_epsilon, weight_decay=settings.weight_decay)

    def update(self, batch: Batch) -> Generator[None, None, dict[str, float]]:
        before, statistics = self._optimizer.snapshot(), [buffer.clone() for buffer in self._policy.buffers()]
        try:
            return (yield from self._update(batch))
        except DivergedError:
            self._optimizer.restore(before)
            for buffer, earlier in zip(self._policy.buffers(), statistics, strict=True):
                buffer.copy_(earlier)
            raise

    def state(self) -> Mapping[str, Tensor]:
        return self._optimizer.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._optimizer.load_state(state)

    def _update(self, batch: Batch) -> Generator[None, None, dict[str, float]]:
        settings, reducer = self._settings, self._context.reducer
        coefficients = self._coefficients(batch.steps)
        advantages = self._advantages(batch)
        values = self._policy.return_values(batch.outputs["value"])
        shares = sampler(batch, settings.minibatches)
        epochs = self._draw_epochs(shares, batch.version)

        counts = torch.cat([shares.valid_counts(parts) for parts in epochs])
        return_sums = counts.new_empty(0)
        if batch.is_first_use:
            return_sums = self._policy.return_sums(advantages + values, batch.valid)
        sums = torch.cat([batch_sums(advantages, values, batch.valid), counts, return_sums])
        yield from reducer.sum(sums)
        if len(return_sums):
            self._policy.update_returns(sums[-len(return_sums) :])
        numbers: list[float] = sums.tolist()
        statistics = batch_statistics(numbers[:BATCH_SUMS])
        counts_left = iter(numbers[BATCH_SUMS : BATCH_SUMS + len(counts)])
        targets = self._targets(advantages, values, statistics)

        metrics: dict[str, float] = {}
        epochs_done = 0
        for parts in epochs:
            losses, norms = [], []
            for part in parts:
                loss, norm = yield from self._step(shares.take(part, targets), next(counts_left), coefficients)
                losses.append(loss)
                norms.append(norm)
                yield
            metrics |= yield from self._epoch_metrics(losses, norms, statistics.valid, is_first=epochs_done == 0)
            epochs_done += 1
            if settings.target_kl is not None and metrics["approx_kl"] > settings.target_kl:
                break

        if batch.is_first_use:
            yield from self._update_normalizers(batch, advantages + values)
        return metrics | {
            "explained_variance": statistics.explained_variance,
            "learning_rate": coefficients.learning_rate,
            "epochs_done": float(epochs_done),
            "value_mean": statistics.value_mean,
            "return_target_mean": statistics.return_target_mean,
            "advantage_std": statistics.advantage_std,
        }

    def _coefficients(self, steps: int) -> Coefficients:
        settings = self._settings
        return Coefficients(
            learning_rate=value_at(settings.learning_rate, steps),
            clip_ratio=value_at(settings.clip_ratio, steps),
            value_clip=settings.value_clip,
            value=settings.value_coefficient,
            entropy=value_at(settings.entropy_coefficient, steps),
        )

    def _advantages(self, batch: Batch) -> Tensor:
        """GAE on the behaviour policy's values; only the bootstrap is computed now."""
        steps = len(batch.rewards)
        with self._autocast():
            last = self._policy.act(
                {key: array[steps] for key, array in batch.observations.items()},
                batch.final_state,
                batch.first[steps],
                action_masks=None if batch.action_masks is None else batch.action_masks[steps],
                generator=None,
            )
        values = self._policy.return_values(batch.outputs["value"])
        last_values = self._policy.return_values(last.outputs["value"])
        return gae(
            batch.rewards,
            values,
            torch.cat([values[1:], last_values.unsqueeze(0)]),
            batch.terminated,
            batch.truncated,
            gamma=self._settings.gamma,
            lambda_=self._settings.gae_lambda,
        )

    def _targets(self, advantages: Tensor, values: Tensor, statistics: BatchStatistics) -> Targets:
        targets = self._policy.normalize_values(advantages + values)
        if self._settings.normalize_advantages:
            advantages = (advantages - statistics.advantage_mean) / (statistics.advantage_std + 1e-8)
        return Targets(advantages, self._policy.normalize_values(values), targets)

    def _draw_epochs(self, shares: Sampler, version: int) -> list[list[Tensor]]:
        """The parts of all epochs, from the trainer's seed and the version alone."""
        seed = np.random.SeedSequence((self._context.seed, version)).generate_state(1, np.uint64).item()
        generator = torch.Generator().manual_seed(seed)
        return [shares.epoch(generator) for _ in range(self._settings.epochs)]

    def _step(
        self, rows: Minibatch, valid_count: float, coefficients: Coefficients
    ) -> Generator[None, None, tuple[Loss, float]]:
        """One gradient step; the norm is that before clipping.

        Raises:
            DivergedError: the norm (any trainer's gradient) or any trainer's loss is not finite. No step was made.
        """
        with self._autocast():
            evaluated = self._policy.evaluate(rows.observations, rows.state, rows.first, action_masks=rows.action_masks)
            loss = ppo_loss(evaluated, rows, coefficients)
        scaled = loss.total / max(valid_count, 1.0)
        gradients = self._optimizer.gradients
        gradients.zero_()
        torch.autograd.backward(scaled)
        total = scaled.detach().reshape(1)
        if self._context.reducer.trainers > 1:
            flat = torch.cat([gradients, total])
            yield from self._context.reducer.sum(flat)
            gradients.copy_(flat[:-1])
            total = flat[-1:]
        norm, total_number = torch.cat([gradients.norm().reshape(1), total]).tolist()
        for name, number in (("loss", total_number), ("gradient norm", norm)):
            if not math.isfinite(number):
                raise DivergedError(f"the {name} is {number}")
        self._optimizer.step(coefficients.learning_rate, norm, self._settings.max_gradient_norm)
        return loss, norm

    def _epoch_metrics(
        self, losses: list[Loss], norms: list[float], valid_count: float, *, is_first: bool
    ) -> Generator[None, None, dict[str, float]]:
        """Means over the epoch's valid records of all trainers."""
        sums = torch.stack([loss.sums for loss in losses]).double().sum(0)
        flat = torch.cat([sums, losses[0].max_deviation.double().reshape(1)])
        yield from self._context.reducer.sum(flat)
        *numbers, deviation = flat.tolist()
        metrics = {name: number / max(valid_count, 1.0) for name, number in zip(SUMS, numbers, strict=True)}
        metrics["gradient_norm"] = sum(norms) / len(norms)
        if is_first:
            metrics["ratio_max_deviation_first"] = deviation
        return metrics

    def _update_normalizers(self, batch: Batch, returns: Tensor) -> Generator[None]:
        steps = len(batch.rewards)
        observations = {key: array[:steps] for key, array in batch.observations.items()}
        sums = self._policy.normalizer_sums(observations, returns, batch.valid)
        if len(sums):
            yield from self._context.reducer.sum(sums)
            self._policy.update_normalizers(sums)

    def _autocast(self) -> AbstractContextManager[object]:
        if self._context.autocast is None:
            return nullcontext()
        return torch.autocast(self._context.device.type, dtype=self._context.autocast)
