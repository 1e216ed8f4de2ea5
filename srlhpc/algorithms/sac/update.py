"""One SAC update, step by step.

Critics, actor and temperature learn at once: all gradients are those at the parameters before the update. So one
collective call adds up everything, and nothing has moved yet when a number turns out not to be finite.

Letters: T trained records of a window, B windows of this trainer, N = T x B rows, D dimensions of an action,
C critics.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, DivergedError, Update, sum_together
from srlhpc.algorithms.device_numbers import to_host_list
from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.algorithms.sac.loss import actor_loss, critic_errors, critic_loss, soft_targets
from srlhpc.algorithms.sac.settings import Settings
from srlhpc.algorithms.sac.temperature import Temperature
from srlhpc.algorithms.state_parts import check_names, joined, part_of
from srlhpc.algorithms.target_network import TargetNetwork
from srlhpc.environment import Continuous
from srlhpc.policies.contracts import ActorAndCritics
from srlhpc.specs.schedule import value_at


class Rows(NamedTuple):
    """The trained records of a batch side by side."""

    seen: Any
    """Observations as actor and critics take them, N rows."""
    later: Any
    """Observations of the successors of the records."""
    actions: Tensor
    """float32 `[N, D]` in [-1, 1]."""
    rewards: Tensor
    terminated: Tensor
    valid: Tensor
    weights: Tensor | None
    """Importance weights, float32 `[N]`, or None."""


class CriticPart(NamedTuple):
    """What the critics' gradient leaves."""

    sums: Tensor
    """float32 `[4]`: loss; values, absolute errors (both means over critics) and targets, over valid records."""
    errors: Tensor
    """Absolute errors, mean over critics, float32 `[N]`."""


class Numbers(NamedTuple):
    """What one update knows on the host; sums are over the valid records of all trainers."""

    critic_loss: float
    values: float
    errors: float
    targets: float
    actor_loss: float
    log_probs: float
    valid: float
    critic_norm: float
    actor_norm: float
    temperature: float


class Sac(Algorithm):
    """Soft actor-critic of an actor and critics; the critics, their targets and the temperature stay on trainers."""

    def __init__(self, settings: Settings, trained: ActorAndCritics, context: Context) -> None:
        self._settings, self._context = settings, context
        self._actor, self._critics = trained.actor, trained.critics
        self._actor_parameters = list(trained.actor.parameters())
        self._actor_adam = FlatAdam(trained.actor, epsilon=settings.adam_epsilon)
        self._critic_adam = FlatAdam(trained.critics, epsilon=settings.adam_epsilon)
        self._target = TargetNetwork(trained.critics, self._critic_adam)
        actions = trained.actor.kind.actions
        assert isinstance(actions, Continuous)
        self._temperature = Temperature(settings, actions.size, context.device)

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        rows = self._rows(batch)
        now, later = standard_normal(self._context.seed, batch.version, 2, *rows.actions.shape).to(
            self._context.device, non_blocking=True
        )
        critic = self._critic_gradients(rows, self._targets(rows, later))
        yield
        actor_sums = self._actor_gradients(rows, now)
        valid = rows.valid.sum(dtype=torch.float32).reshape(1)
        numbers = yield from self._reduced(torch.cat([critic.sums, actor_sums, valid]))
        self._check(numbers)
        if numbers.valid:
            self._step(numbers, batch.steps)
        errors, counted = (tensor.view(batch.valid.shape) for tensor in (critic.errors, rows.valid))
        return Update(self._metrics(numbers, batch.steps), errors.sum(0) / counted.sum(0).clamp(min=1))

    def state(self) -> Mapping[str, Tensor]:
        return joined(
            {
                "actor": self._actor_adam.state(),
                "critics": {"parameters": self._critic_adam.parameters, **self._critic_adam.state()},
                "targets": {"parameters": self._target.parameters},
                "temperature": self._temperature.state(),
            }
        )

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        check_names("sac", state, self.state())
        self._actor_adam.load_state(part_of(state, "actor"))
        critics = part_of(state, "critics")
        self._critic_adam.parameters.copy_(critics.pop("parameters"))
        self._critic_adam.load_state(critics)
        self._target.load(state["targets.parameters"])
        self._temperature.load_state(part_of(state, "temperature"))

    def _rows(self, batch: Batch) -> Rows:
        # Both warm up or extend what has memory or more steps, which sac has not.
        assert batch.burn_in_steps == batch.after == 0
        records = len(batch.rewards)
        weights = batch.weights
        if weights is not None:
            weights = weights.expand(records, -1).reshape(-1)
        return Rows(
            seen=self._actor.encode({key: array[:-1] for key, array in batch.observations.items()}),
            later=self._actor.encode({key: array[1:] for key, array in batch.observations.items()}),
            actions=batch.actions.flatten(0, 1),
            rewards=batch.rewards.flatten(),
            terminated=batch.terminated.flatten(),
            valid=batch.valid.flatten(),
            weights=weights,
        )

    @torch.no_grad()
    def _targets(self, rows: Rows, noise: Tensor) -> Tensor:
        with self._context.arithmetic():
            drawn = self._actor.distribution(rows.later).draw(noise)
            values = self._target.module(rows.later, drawn.actions)
        return soft_targets(
            rows.rewards,
            rows.terminated,
            values,
            drawn.log_probs,
            gamma=self._settings.gamma,
            temperature=self._temperature.value,
        )

    def _critic_gradients(self, rows: Rows, targets: Tensor) -> CriticPart:
        with self._context.arithmetic():
            values = self._critics(rows.seen, rows.actions)
        errors = critic_errors(values, targets, rows.valid)
        loss = critic_loss(errors, rows.weights)
        self._critic_adam.gradients.zero_()
        torch.autograd.backward(loss)
        with torch.no_grad():
            sizes = errors.abs().mean(0)
            # Of the values, only those of valid records are added up: an error is their distance from the target.
            valid_targets = torch.where(rows.valid, targets, 0.0).sum()
            valid_values = errors.mean(0).sum() + valid_targets
            return CriticPart(torch.stack([loss, valid_values, sizes.sum(), valid_targets]), sizes)

    def _actor_gradients(self, rows: Rows, noise: Tensor) -> Tensor:
        """Sums over valid records, float32 `[2]`: loss, and log-probabilities of the drawn actions."""
        with self._context.arithmetic():
            drawn = self._actor.distribution(rows.seen).draw(noise)
            values = self._critics(rows.seen, drawn.actions)
        loss = actor_loss(drawn.log_probs, values, rows.valid, temperature=self._temperature.value)
        self._actor_adam.gradients.zero_()
        # With inputs named, no gradient is computed of the critics' parameters: a ninth of an update's products.
        torch.autograd.backward(loss, inputs=self._actor_parameters)
        with torch.no_grad():
            return torch.stack([loss, torch.where(rows.valid, drawn.log_probs, 0.0).sum()])

    def _reduced(self, sums: Tensor) -> Generator[None, None, Numbers]:
        """Adds up gradients and `sums` over all trainers; gradients are those of mean losses afterwards."""
        critics, actor, reducer = self._critic_adam.gradients, self._actor_adam.gradients, self._context.reducer
        yield from sum_together(reducer, critics, actor, sums)
        count = sums[-1].clamp(min=1.0)
        critics /= count
        actor /= count
        norms = torch.stack([critics.norm(), actor.norm()])
        return Numbers(*(yield from to_host_list(torch.cat([sums, norms, self._temperature.value]))))

    def _check(self, numbers: Numbers) -> None:
        named = {
            "critics' loss": numbers.critic_loss,
            "actor's loss": numbers.actor_loss,
            "norm of the critics' gradient": numbers.critic_norm,
            "norm of the actor's gradient": numbers.actor_norm,
        }
        for name, number in named.items():
            if not math.isfinite(number):
                raise DivergedError(f"the {name} is {number}")

    def _step(self, numbers: Numbers, steps: int) -> None:
        settings = self._settings
        for adam, norm, rate in (
            (self._critic_adam, numbers.critic_norm, settings.critic_learning_rate),
            (self._actor_adam, numbers.actor_norm, settings.actor_learning_rate),
        ):
            adam.step(value_at(rate, steps), torch.tensor(norm), settings.max_gradient_norm)
        self._temperature.step(numbers.temperature, numbers.log_probs / numbers.valid, self._temperature_rate(steps))
        self._target.follow(settings.polyak)

    def _temperature_rate(self, steps: int) -> float:
        rate = self._settings.temperature_learning_rate
        return value_at(self._settings.critic_learning_rate if rate is None else rate, steps)

    def _metrics(self, numbers: Numbers, steps: int) -> dict[str, float]:
        count = max(numbers.valid, 1.0)
        return {
            "critic_loss": numbers.critic_loss / count,
            "actor_loss": numbers.actor_loss / count,
            "q_mean": numbers.values / count,
            "q_target_mean": numbers.targets / count,
            "td_error": numbers.errors / count,
            "entropy": -numbers.log_probs / count,
            "temperature": numbers.temperature,
            "critic_gradient_norm": numbers.critic_norm,
            "actor_gradient_norm": numbers.actor_norm,
            "critic_learning_rate": value_at(self._settings.critic_learning_rate, steps),
            "actor_learning_rate": value_at(self._settings.actor_learning_rate, steps),
        }


def standard_normal(seed: int, version: int, *shape: int) -> Tensor:
    """Noise of one update, float32 on the host, from the trainer's seed and the version alone."""
    state = np.random.SeedSequence((seed, version)).generate_state(1, np.uint64).item()
    return torch.randn(shape, generator=torch.Generator().manual_seed(state))
