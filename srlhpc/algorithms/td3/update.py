"""One TD3 update, step by step.

The critics learn in every update. The actor learns beside them in every `actor_every_updates`-th, when targets move.
Which updates those are follows from the version alone: all trainers send messages of one length, and a run that goes on
does what it would have done.

Letters: N rows, D dimensions of an action, C critics.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, Update
from srlhpc.algorithms.named_tensors import joined, put_back
from srlhpc.algorithms.objectives import Objective, mean_step
from srlhpc.algorithms.target_network import TargetNetwork
from srlhpc.algorithms.td3.loss import actor_loss
from srlhpc.algorithms.td3.settings import Settings
from srlhpc.algorithms.transitions import Transitions, standard_normal, transitions
from srlhpc.algorithms.twin_critics import TwinCritics
from srlhpc.policies.contracts import ActorAndCritics
from srlhpc.rl.deterministic import Deterministic
from srlhpc.rl.td import one_step


class Td3(Algorithm):
    """Twin delayed DDPG of an actor and critics; the critics and all targets stay on trainers."""

    def __init__(self, settings: Settings, trained: ActorAndCritics[Deterministic], context: Context) -> None:
        self._settings, self._context = settings, context
        self._actor = trained.actor
        self._acting = Objective("actor", trained.actor, settings.actor_learning_rate, settings.adam_epsilon)
        self._actor_target = TargetNetwork(trained.actor, self._acting.optimizer)
        self._critics = TwinCritics(trained.critics, settings.critic_learning_rate, settings.adam_epsilon)

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        settings = self._settings
        moves_actor = (batch.version + 1) % settings.actor_every_updates == 0
        rows = transitions(batch, self._actor)
        critic = self._critics.find_gradients(rows, self._targets(rows, batch.version), self._context)
        yield
        sums, objectives = critic.sums, [self._critics.objective]
        if moves_actor:
            sums = sums | self._find_actor_gradients(rows)
            objectives.append(self._acting)
        means = yield from mean_step(
            objectives,
            sums,
            rows.valid,
            reducer=self._context.reducer,
            steps=batch.steps,
            max_gradient_norm=settings.max_gradient_norm,
        )
        if means.weight:
            if moves_actor or settings.critic_targets_every_update:
                self._critics.target.follow(settings.polyak)
            if moves_actor:
                self._actor_target.follow(settings.polyak)
        # What acts stays as it is while the critics learn alone.
        return Update(means.metrics, critic.feedback, publishes=moves_actor)

    def state(self) -> Mapping[str, Tensor]:
        own = {
            "actor": self._acting.optimizer.state(),
            "actor_target": {"parameters": self._actor_target.parameters},
        }
        return joined(own | self._critics.state())

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        put_back(self.state(), state, "state of td3")

    @torch.no_grad()
    def _targets(self, rows: Transitions, version: int) -> Tensor:
        """What the least of the target critics makes of actions near those of the target actor (eq. 10 and 14)."""
        settings = self._settings
        noise = standard_normal(self._context, version, *rows.actions.shape)
        with self._context.arithmetic():
            policy = self._actor_target.module.distribution(rows.later)
            actions = policy.smoothed(noise, std=settings.target_noise, clip=settings.target_noise_clip)
            values: Tensor = self._critics.target.module(rows.later, actions)
        return one_step(rows.rewards, rows.terminated, values.amin(0), gamma=settings.gamma)

    def _find_actor_gradients(self, rows: Transitions) -> dict[str, Tensor]:
        """Leaves the gradients in the optimiser; the sum of the loss over valid records."""
        with self._context.arithmetic():
            actions = self._actor.distribution(rows.seen).actions
            values = self._critics.module.first(rows.seen, actions)
        loss = actor_loss(values, rows.valid)
        self._acting.differentiate(loss)
        return {"actor_loss": loss.detach()}
