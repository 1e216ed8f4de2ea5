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

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, Update
from srlhpc.algorithms.device_numbers import to_host_list
from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.algorithms.gradient_step import gradient_step
from srlhpc.algorithms.normalizers import take_in
from srlhpc.algorithms.ppo.estimates import Estimates, estimates
from srlhpc.algorithms.ppo.loss import Coefficients, ppo_loss
from srlhpc.algorithms.ppo.minibatches import Minibatch, Sampler, Targets, minibatch, sampler
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
from srlhpc.algorithms.ppo.warm_up import warmed_up
from srlhpc.algorithms.undoing import undone_if_diverged
from srlhpc.data.blocks import OBSERVATION
from srlhpc.policies.contracts import ActorCriticPolicy, Evaluate
from srlhpc.rl.staleness import lag_weights
from srlhpc.specs.schedule import value_at


class Ppo(Algorithm):
    """Proximal policy optimisation of an actor-critic policy."""

    def __init__(
        self, settings: Settings, policy: ActorCriticPolicy, context: Context, evaluate: Evaluate | None = None
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._context = context
        self._evaluate = evaluate or policy.evaluate
        self.optimizer = FlatAdam(policy, epsilon=settings.adam_epsilon, weight_decay=settings.weight_decay)
        """What moves the parameters."""

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        with undone_if_diverged(self._policy, self.optimizer):
            return Update((yield from self.learn(batch, self.estimates(batch))))

    def state(self) -> Mapping[str, Tensor]:
        return self.optimizer.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.optimizer.load_state(state)

    def estimates(self, batch: Batch) -> Estimates:
        """Advantages and values of a batch, by the parameters of now."""
        with self._context.arithmetic():
            return estimates(self._policy, batch, gamma=self._settings.gamma, gae_lambda=self._settings.gae_lambda)

    def learn(self, batch: Batch, estimated: Estimates) -> Generator[None, None, dict[str, float]]:
        """One update, as `Algorithm.update` says, that leaves it to the caller to go back if it diverges.

        Args:
            batch: what is learnt from.
            estimated: what `estimates` says of it.

        Returns:
            Metrics.

        Raises:
            DivergedError: parameters and buffers may have moved.
        """
        settings, reducer = self._settings, self._context.reducer
        coefficients = self._coefficients(batch.steps)
        shares = sampler(batch, settings.minibatches)
        epochs = self._draw_epochs(shares, batch.version)

        counts = torch.cat([shares.valid_counts(minibatches) for minibatches in epochs])
        lags = batch.version - batch.versions
        weights = lag_weights(lags, batch.valid, settings.lag_exponent) if settings.lag_exponent else None
        weight_sum = counts.new_empty(0) if weights is None else weights.sum().reshape(1)
        return_sums = counts.new_empty(0)
        # Later uses would count the batch's returns again.
        if batch.is_first_use:
            return_sums = self._policy.return_sums(estimated.returns, batch.valid)
        # One collective call for all that must be known before the first gradient step.
        sums = torch.cat([batch_sums(*estimated, batch.valid), counts, weight_sum, return_sums])
        yield from reducer.sum(sums)
        numbers = yield from to_host_list(sums)
        if len(return_sums):
            self._policy.update_returns(sums[-len(return_sums) :])
        statistics = batch_statistics(numbers[:BATCH_SUMS])
        counts_left = iter(numbers[BATCH_SUMS : BATCH_SUMS + len(counts)])
        targets = replace(
            self._targets(estimated, statistics),
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
                rows = minibatch(batch, targets, shares.take(indices))
                step = yield from self._step(rows, batch.burn_in_steps, next(counts_left), coefficients)
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
            yield from self._update_normalizers(batch, estimated.returns)
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

    def _targets(self, estimated: Estimates, statistics: BatchStatistics) -> Targets:
        advantages, normalized = estimated.advantages, self._policy.normalize_values
        if self._settings.normalize_advantages:
            advantages = (advantages - statistics.advantage_mean) / (statistics.advantage_std + 1e-8)
        return Targets(advantages, normalized(estimated.values), normalized(estimated.returns))

    def _proximal(self, batch: Batch, lags: Tensor) -> Tensor:
        """Log-probabilities by the parameters of now; where these acted, as they were recorded, to the bit."""
        with self._context.arithmetic():
            now = log_probs_now(self._policy, batch, self._settings.minibatches)
        return torch.where(lags > 0, now, batch.log_probs)

    def _draw_epochs(self, shares: Sampler, version: int) -> list[list[Tensor]]:
        """The minibatches of all epochs, as indices, from the trainer's seed and the version alone."""
        generator = self._context.generator(version)
        return [shares.epoch(generator) for _ in range(self._settings.epochs)]

    def _step(
        self, rows: Minibatch, burn_in: int, valid_count: float, coefficients: Coefficients
    ) -> Generator[None, None, GradientStep]:
        # What has no gradients takes a context of its own (`Context.arithmetic`).
        with self._context.arithmetic():
            rows = warmed_up(self._policy, rows, burn_in)
        with self._context.arithmetic():
            said = self._evaluate(rows.observations, rows.state, rows.first, action_masks=rows.action_masks)
            loss = ppo_loss(said, rows, coefficients)
        checks = yield from gradient_step(
            loss.total,
            valid_count,
            self.optimizer,
            reducer=self._context.reducer,
            learning_rate=coefficients.learning_rate,
            max_gradient_norm=self._settings.max_gradient_norm,
        )
        return GradientStep(loss, checks)

    def _epoch_numbers(self, steps: list[GradientStep]) -> Generator[None, None, Tensor]:
        """What `epoch_of` takes: sums over the epoch's valid records of all trainers, and the checks of every step."""
        sums = torch.stack([step.loss.sums for step in steps]).double().sum(0)
        flat = torch.cat([sums, steps[0].loss.max_deviation.double().reshape(1)])
        yield from self._context.reducer.sum(flat)
        return torch.cat([flat, *(step.checks for step in steps)])

    def _update_normalizers(self, batch: Batch, returns: Tensor) -> Generator[None]:
        steps = len(batch.rewards)
        keys = self._policy.normalized_observations
        observations = {key: batch.fields[OBSERVATION + key][:steps] for key in keys}
        yield from take_in(self._policy, observations, returns, batch.valid, self._context.reducer)
