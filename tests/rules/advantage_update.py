"""One update of the rule `tests.rules.advantage`."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, Update
from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.rl.returns import gae
from tests.rules.advantage import Settings
from tests.rules.critic_beside_modules import ActorBesideCritic


class Advantage(Algorithm):
    """Values are the critic's of now: no record brings any."""

    def __init__(self, settings: Settings, trained: ActorBesideCritic, context: Context) -> None:
        self._settings, self._trained, self._context = settings, trained, context
        self._optimizer = FlatAdam(trained, epsilon=1e-5)

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        assert batch.outputs == {}
        steps = len(batch.rewards)
        values = self._trained.values(batch.observations).view(steps + 1, -1)
        advantages = gae(
            batch.rewards,
            values[:-1].detach(),
            values[1:].detach(),
            batch.terminated,
            batch.truncated,
            gamma=self._settings.gamma,
            lambda_=1.0,
        )
        seen = {key: array[:-1] for key, array in batch.observations.items()}
        log_probs = self._trained.policy.distribution(seen, None).log_prob(batch.actions.flatten(0, 1))
        errors = advantages + values[:-1].detach() - values[:-1]
        losses = 0.5 * errors.square() - advantages * log_probs.view_as(advantages)
        loss = torch.where(batch.valid, losses, 0.0).mean() / self._context.reducer.trainers
        gradients = self._optimizer.gradients
        gradients.zero_()
        torch.autograd.backward(loss)
        yield
        yield from self._context.reducer.sum(gradients)
        self._optimizer.step(self._settings.learning_rate, gradients.norm(), 0.5)
        return Update({"loss": loss.item()})

    def state(self) -> Mapping[str, Tensor]:
        return self._optimizer.state() | self._critic()

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        own = self._critic()
        self._optimizer.load_state({name: tensor for name, tensor in state.items() if name not in own})
        for name, tensor in own.items():
            tensor.copy_(state[name])

    def _critic(self) -> dict[str, Tensor]:
        return {f"critic.{name}": tensor for name, tensor in self._trained.critic.state_dict().items()}
