"""One gradient step towards labelled actions.

Letters: R records of a window, T trained ones, B columns of this trainer.

Collective call, the same on all trainers: gradients with what the metrics are made of, before the step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, Update
from srlhpc.algorithms.imitation.settings import ImitationSettings
from srlhpc.algorithms.normalizers import take_in
from srlhpc.algorithms.objectives import Objective, mean_step
from srlhpc.environment import Continuous
from srlhpc.policies.contracts import ActorCriticPolicy
from srlhpc.policies.policy import State
from srlhpc.rl.distributions import Distribution
from srlhpc.specs.schedule import value_at


class Imitation(Algorithm):
    """Maximum likelihood of labels: the mean of -log pi(label | s) - c H(pi) over valid records falls.

    The value of the network is not trained.

    Args:
        settings: of the rule.
        policy: an actor-critic.
        labels: the actions that a batch says are right, `[R, B, ...]`.
        context: of the trainer.
    """

    def __init__(
        self,
        settings: ImitationSettings,
        policy: ActorCriticPolicy,
        labels: Callable[[Batch], Tensor],
        context: Context,
    ) -> None:
        self._settings, self._policy, self._labels, self._context = settings, policy, labels, context
        self._objective = Objective(None, policy, settings.learning_rate, settings.adam_epsilon, settings.weight_decay)
        self._miss = "label_distance" if isinstance(policy.kind.actions, Continuous) else "label_disagreement"

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        yield from self._take_in(batch)
        total, sums = self._loss(batch)
        self._objective.differentiate(total)
        yield
        means = yield from mean_step(
            [self._objective],
            sums,
            batch.valid[_trained(batch)],
            reducer=self._context.reducer,
            steps=batch.steps,
            max_gradient_norm=self._settings.max_gradient_norm,
        )
        return Update(means.metrics)

    def state(self) -> Mapping[str, Tensor]:
        return self._objective.optimizer.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._objective.optimizer.load_state(state)

    def _take_in(self, batch: Batch) -> Generator[None]:
        """Moves the statistics of observations, before they are needed: no earlier probability has to stay."""
        now = _trained(batch)
        observations = {key: array[now] for key, array in batch.observations.items()}
        yield from take_in(self._policy, observations, batch.rewards[now], batch.valid[now], self._context.reducer)

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss summed over valid records, with gradient, and the sums of what is a mean over them as a metric."""
        now = _trained(batch)
        valid, labels = batch.valid[now], self._labels(batch)[now]
        # An invalid record's label may be anything, and its gradient no number behind any mask.
        labels = torch.where(valid.reshape(*valid.shape, *[1] * (labels.ndim - valid.ndim)), labels, 0)
        distribution = self._distribution(batch, now)
        log_probs = torch.where(valid, distribution.log_prob(labels), 0.0)
        entropies = torch.where(valid, distribution.entropy(), 0.0)
        losses = -log_probs - value_at(self._settings.entropy_coefficient, batch.steps) * entropies
        if batch.weights is not None:
            losses = losses * batch.weights
        with torch.no_grad():
            misses = torch.where(valid, self._misses(distribution, labels), 0.0)
            told = {"loss": losses, "label_log_prob": log_probs, "entropy": entropies, self._miss: misses}
            sums = {name: numbers.sum() for name, numbers in told.items()}
        return losses.sum(), sums

    def _distribution(self, batch: Batch, now: slice) -> Distribution:
        masks, early = batch.action_masks, slice(0, batch.burn_in_steps)
        with self._context.arithmetic():
            state: State = batch.state
            if state:
                state = self._policy.warm_up(
                    {key: array[early] for key, array in batch.observations.items()},
                    state,
                    batch.first[early],
                    action_masks=None if masks is None else masks[early],
                )
        with self._context.arithmetic():
            return self._policy.evaluate(
                {key: array[now] for key, array in batch.observations.items()},
                state,
                batch.first[now],
                action_masks=None if masks is None else masks[now],
            ).distribution

    def _misses(self, distribution: Distribution, labels: Tensor) -> Tensor:
        """Whether the most probable action is another, or of continuous ones how far it is, float32 `[T, B]`."""
        mode = distribution.mode()
        if isinstance(self._policy.kind.actions, Continuous):
            return (mode - labels).square().sum(-1).sqrt()
        differ = (mode != labels).float()
        return differ if differ.ndim == 2 else differ.amax(-1)


def _trained(batch: Batch) -> slice:
    return slice(batch.burn_in_steps, len(batch.rewards) - batch.after)
