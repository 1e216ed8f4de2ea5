"""One SAC update, step by step: critics, actor and temperature learn at once (srlhpc/algorithms/objectives.py).

Letters: N rows, D dimensions of an action, C critics.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, Update
from srlhpc.algorithms.named_tensors import joined, put_back
from srlhpc.algorithms.objectives import Objective, mean_step
from srlhpc.algorithms.sac.loss import actor_loss, soft_values
from srlhpc.algorithms.sac.settings import Settings
from srlhpc.algorithms.sac.temperature import Temperature
from srlhpc.algorithms.transitions import Transitions, standard_normal, transitions
from srlhpc.algorithms.twin_critics import TwinCritics
from srlhpc.environment import Continuous
from srlhpc.policies.contracts import ActorAndCritics
from srlhpc.rl.squashed_gaussian import SquashedGaussian
from srlhpc.rl.td import one_step
from srlhpc.specs.schedule import value_at


class Sac(Algorithm):
    """Soft actor-critic of an actor and critics; the critics, their targets and the temperature stay on trainers."""

    def __init__(self, settings: Settings, trained: ActorAndCritics[SquashedGaussian], context: Context) -> None:
        self._settings, self._context = settings, context
        self._actor = trained.actor
        self._acting = Objective("actor", trained.actor, settings.actor_learning_rate, settings.adam_epsilon)
        self._critics = TwinCritics(trained.critics, settings.critic_learning_rate, settings.adam_epsilon)
        actions = trained.actor.kind.actions
        assert isinstance(actions, Continuous)
        self._temperature = Temperature(settings, actions.size, context.device)

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        settings, temperature = self._settings, self._temperature
        rows = transitions(batch, self._actor)
        now, later = standard_normal(self._context, batch.version, 2, *rows.actions.shape)
        critic = self._critics.find_gradients(rows, self._targets(rows, later), self._context)
        yield
        sums = critic.sums | self._find_actor_gradients(rows, now)
        objectives = (self._critics.objective, self._acting)
        means = yield from mean_step(
            objectives,
            sums,
            rows.valid,
            reducer=self._context.reducer,
            steps=batch.steps,
            max_gradient_norm=settings.max_gradient_norm,
            temperature=temperature.value,
        )
        metrics = means.metrics
        if means.weight:
            temperature.step(metrics["temperature"], -metrics["entropy"], self._temperature_rate(batch.steps))
            self._critics.target.follow(settings.polyak)
        return Update(metrics, critic.feedback)

    def state(self) -> Mapping[str, Tensor]:
        own = {"actor": self._acting.optimizer.state(), "temperature": self._temperature.state()}
        return joined(own | self._critics.state())

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        put_back(self.state(), state, "state of sac")
        self._temperature.restored()

    @torch.no_grad()
    def _targets(self, rows: Transitions, noise: Tensor) -> Tensor:
        with self._context.arithmetic():
            drawn = self._actor.distribution(rows.later).draw(noise)
            values = self._critics.target.module(rows.later, drawn.actions)
        soft = soft_values(values, drawn.log_probs, temperature=self._temperature.value)
        return one_step(rows.rewards, rows.terminated, soft, gamma=self._settings.gamma)

    def _find_actor_gradients(self, rows: Transitions, noise: Tensor) -> dict[str, Tensor]:
        """Leaves the gradients in the optimiser; sums over valid records: the loss, and the drawn actions' entropy."""
        with self._context.arithmetic():
            drawn = self._actor.distribution(rows.seen).draw(noise)
            values = self._critics.module(rows.seen, drawn.actions)
        loss = actor_loss(drawn.log_probs, values, rows.valid, temperature=self._temperature.value)
        self._acting.differentiate(loss)
        entropy = torch.where(rows.valid, drawn.log_probs.detach(), 0.0).sum().neg()
        return {"actor_loss": loss.detach(), "entropy": entropy}

    def _temperature_rate(self, steps: int) -> float:
        rate = self._settings.temperature_learning_rate
        return value_at(self._settings.critic_learning_rate if rate is None else rate, steps)
