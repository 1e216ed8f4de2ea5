"""One update of the rule `tests.rules.replayed_q`."""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, Update
from srlhpc.algorithms.flat_adam import FlatAdam
from tests.rules.action_values_modules import ActionValues
from tests.rules.replayed_q import Settings


class ReplayedQ(Algorithm):
    """Learns the n-step return of each trained record."""

    def __init__(self, settings: Settings, policy: ActionValues, context: Context) -> None:
        self._settings, self._policy, self._context = settings, policy, context
        self._target = copy.deepcopy(policy)
        self._optimizer = FlatAdam(policy, epsilon=1e-5)

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        if batch.version % self._settings.target_every_updates == 0:
            self._target.load_state_dict(self._policy.state_dict())
        trained = slice(batch.burn_in_steps, len(batch.rewards) - batch.after)
        errors = torch.where(batch.valid, self._targets(batch) - self._chosen(batch), 0.0)[trained]
        weights = torch.ones(errors.shape[1]) if batch.weights is None else batch.weights
        loss = 0.5 * (weights * errors.square()).mean() / self._context.reducer.trainers
        gradients = self._optimizer.gradients
        gradients.zero_()
        torch.autograd.backward(loss)
        yield
        yield from self._context.reducer.sum(gradients)
        self._optimizer.step(self._settings.learning_rate, gradients.norm(), 1.0)
        metrics = {"loss": loss.detach().clone()}
        yield from self._context.reducer.sum(metrics["loss"])
        feedback = errors.detach().abs().amax(0)
        return Update({name: tensor.item() for name, tensor in metrics.items()}, feedback)

    def _chosen(self, batch: Batch) -> Tensor:
        values = self._policy.values({key: array[:-1] for key, array in batch.observations.items()})
        return values.gather(-1, batch.actions.flatten().unsqueeze(-1)).view_as(batch.rewards)

    @torch.no_grad()
    def _targets(self, batch: Batch) -> Tensor:
        gamma = self._settings.gamma
        later = {key: array[1:] for key, array in batch.observations.items()}
        best = self._policy.values(later).argmax(-1, keepdim=True)
        values = self._target.values(later).gather(-1, best).view_as(batch.rewards)
        one_step = returns = batch.rewards + gamma * values * ~batch.terminated
        stops = batch.terminated | batch.truncated | batch.cut
        stops[-1] = True
        for _ in range(1, self._settings.n_steps):
            following = torch.cat([returns[1:], returns[-1:]])
            returns = torch.where(stops, one_step, batch.rewards + gamma * following)
        return returns

    def state(self) -> Mapping[str, Tensor]:
        return self._optimizer.state() | self._own()

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        own = self._own()
        self._optimizer.load_state({name: tensor for name, tensor in state.items() if name not in own})
        for name, tensor in own.items():
            tensor.copy_(state[name])

    def _own(self) -> dict[str, Tensor]:
        return {f"target.{name}": tensor for name, tensor in self._target.state_dict().items()}
