"""One PPO update, step by step, with its collective calls.

Letters: T records of a fragment, B columns of this trainer.

Collective calls, the same on all trainers: batch moments with the valid counts of every minibatch and, where their
scale moves before the targets, the sums of the returns; per minibatch the gradients (several trainers only); per epoch
the loss sums; at the end the normaliser sums.

A GPU's numbers are looked at as rarely as can be, since the device would idle until the host has seen them and queued
more: the batch moments, then those of all epochs at once, or with `target_kl`, on which the next depends, of each.
Several trainers wait for the sums of their gradients besides.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, Update, sum_together
from srlhpc.algorithms.device_numbers import to_host_list
from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.algorithms.ppo.loss import Coefficients, ppo_loss
from srlhpc.algorithms.ppo.minibatches import Minibatch, Sampler, Targets, sampler
from srlhpc.algorithms.ppo.proximal import log_probs_now
from srlhpc.algorithms.ppo.settings import Settings
from srlhpc.algorithms.ppo.statistics import (
    BATCH_SUMS,
    BatchStatistics,
    Epoch,
    GradientStep,
    batch_statistics,
    batch_sums,
    epoch_of,
)
from srlhpc.algorithms.undoing import undone_if_diverged
from srlhpc.policies.contracts import ActorCriticPolicy
from srlhpc.rl.returns import gae
from srlhpc.rl.staleness import lag_weights
from srlhpc.specs.schedule import value_at


class Ppo(Algorithm):
    """Proximal policy optimisation of an actor-critic policy."""

    def __init__(self, settings: Settings, policy: ActorCriticPolicy, context: Context) -> None:
        self._settings = settings
        self._policy = policy
        self._context = context
        self._optimizer = FlatAdam(policy, epsilon=settings.adam_epsilon, weight_decay=settings.weight_decay)

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        with undone_if_diverged(self._policy, self._optimizer):
            return Update((yield from self._update(batch)))

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

        counts = torch.cat([shares.valid_counts(minibatches) for minibatches in epochs])
        lags = batch.version - batch.versions
        weights = lag_weights(lags, batch.valid, settings.lag_exponent) if settings.lag_exponent else None
        weight_sum = counts.new_empty(0) if weights is None else weights.sum().reshape(1)
        return_sums = counts.new_empty(0)
        # Later uses would count the batch's returns again.
        if batch.is_first_use:
            return_sums = self._policy.return_sums(advantages + values, batch.valid)
        # One collective call for all that must be known before the first gradient step.
        sums = torch.cat([batch_sums(advantages, values, batch.valid), counts, weight_sum, return_sums])
        yield from reducer.sum(sums)
        numbers = yield from to_host_list(sums)
        if len(return_sums):
            self._policy.update_returns(sums[-len(return_sums) :])
        statistics = batch_statistics(numbers[:BATCH_SUMS])
        counts_left = iter(numbers[BATCH_SUMS : BATCH_SUMS + len(counts)])
        targets = replace(
            self._targets(advantages, values, statistics),
            stale=lags > 0 if settings.stale_ratio_clip is not None else None,
            # They weigh 1 on average, so that losses stay means.
            weights=None
            if weights is None
            else (weights * (statistics.valid / (numbers[BATCH_SUMS + len(counts)] or 1.0))).float(),
            proximal=self._proximal(batch, lags) if settings.decoupled else None,
        )

        done: list[Epoch] = []
        unseen: list[Tensor] = []
        for epoch, minibatches in enumerate(epochs, start=1):
            steps = []
            for indices in minibatches:
                rows = self._warmed_up(shares.take(indices, targets), batch.burn_in_steps)
                step = yield from self._step(rows, next(counts_left), coefficients)
                steps.append(step)
                yield
            unseen.append((yield from self._epoch_numbers(steps)))
            # Nothing depends on these numbers before the last epoch, so a GPU is not asked for them yet.
            if settings.target_kl is None and epoch < len(epochs):
                continue
            done += [epoch_of(row, statistics.valid) for row in (yield from to_host_list(torch.stack(unseen)))]
            unseen.clear()
            if settings.target_kl is not None and done[-1].means["approx_kl"] > settings.target_kl:
                break

        if batch.is_first_use:
            yield from self._update_normalizers(batch, advantages + values)
        return done[-1].means | {
            "gradient_norm": done[-1].gradient_norm,
            "ratio_max_deviation_first": done[0].first_deviation,
            "explained_variance": statistics.explained_variance,
            "learning_rate": coefficients.learning_rate,
            "epochs_done": float(len(done)),
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
            stale_ratio_clip=settings.stale_ratio_clip,
            decoupled_ratio_clip=settings.decoupled_ratio_clip,
        )

    def _advantages(self, batch: Batch) -> Tensor:
        """GAE on the behaviour policy's values; only the bootstrap is computed now."""
        steps = len(batch.rewards)
        with self._context.arithmetic():
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

    def _proximal(self, batch: Batch, lags: Tensor) -> Tensor:
        """Log-probabilities by the parameters of now; where these acted, as they were recorded, to the bit."""
        with self._context.arithmetic():
            now = log_probs_now(self._policy, batch, self._settings.minibatches)
        return torch.where(lags > 0, now, batch.log_probs)

    def _draw_epochs(self, shares: Sampler, version: int) -> list[list[Tensor]]:
        """The minibatches of all epochs, as indices, from the trainer's seed and the version alone."""
        generator = self._context.generator(version)
        return [shares.epoch(generator) for _ in range(self._settings.epochs)]

    def _warmed_up(self, rows: Minibatch, burn_in: int) -> Minibatch:
        """The records behind the burn-in, from the state that it leaves: a constant, so that no gradient goes back."""
        if not burn_in:
            return rows
        with self._context.arithmetic():
            state = self._policy.warm_up(
                {key: array[:burn_in] for key, array in rows.observations.items()},
                rows.state,
                rows.first[:burn_in],
                action_masks=None if rows.action_masks is None else rows.action_masks[:burn_in],
            )
        return rows.after(burn_in, dict(state))

    def _step(
        self, rows: Minibatch, valid_count: float, coefficients: Coefficients
    ) -> Generator[None, None, GradientStep]:
        """One gradient step, unchecked: the caller restores the parameters if a number is not finite."""
        with self._context.arithmetic():
            evaluated = self._policy.evaluate(rows.observations, rows.state, rows.first, action_masks=rows.action_masks)
            loss = ppo_loss(evaluated, rows, coefficients)
        # By the valid records of all trainers: the sum of their gradients is then that of the mean loss.
        scaled = loss.total / max(valid_count, 1.0)
        gradients = self._optimizer.gradients
        gradients.zero_()
        torch.autograd.backward(scaled)
        total = scaled.detach().reshape(1)
        yield from sum_together(self._context.reducer, gradients, total)
        norm = gradients.norm()
        # Without a valid record nothing is learnt, though moments of before would move on.
        if valid_count:
            self._optimizer.step(coefficients.learning_rate, norm, self._settings.max_gradient_norm)
        return GradientStep(loss, torch.cat([total, norm.reshape(1)]))

    def _epoch_numbers(self, steps: list[GradientStep]) -> Generator[None, None, Tensor]:
        """What `epoch_of` takes: sums over the epoch's valid records of all trainers, and the checks of every step."""
        sums = torch.stack([step.loss.sums for step in steps]).double().sum(0)
        flat = torch.cat([sums, steps[0].loss.max_deviation.double().reshape(1)])
        yield from self._context.reducer.sum(flat)
        return torch.cat([flat, *(step.checks for step in steps)])

    def _update_normalizers(self, batch: Batch, returns: Tensor) -> Generator[None]:
        steps = len(batch.rewards)
        observations = {key: array[:steps] for key, array in batch.observations.items()}
        sums = self._policy.normalizer_sums(observations, returns, batch.valid)
        if len(sums):
            yield from self._context.reducer.sum(sums)
            self._policy.update_normalizers(sums)
