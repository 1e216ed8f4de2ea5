"""DQN: the values of single columns, learnt from the greatest of what follows."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context
from srlhpc.algorithms.dqn.settings import Settings
from srlhpc.algorithms.q_learning.learned import AtomReturns, Learned, Means, QuantileReturns
from srlhpc.algorithms.q_learning.update import QLearning, Values
from srlhpc.algorithms.q_learning.windows import sums, trained, values
from srlhpc.policies.contracts import ActionValuePolicy
from srlhpc.specs.action_values import Quantiles


def dqn(settings: Settings, policy: ActionValuePolicy, context: Context) -> Algorithm:
    """Deep Q-learning of a policy of action values."""

    def of_columns(target: nn.Module, batch: Batch) -> Values:
        steps = sums(batch, gamma=settings.gamma, n=settings.n_steps)
        with context.arithmetic():
            pair = values(policy, cast("ActionValuePolicy", target), batch, steps.lengths, double=settings.double)
        return Values(steps, pair, batch.valid[trained(batch)])

    return QLearning(settings, policy, of_columns, _learned(settings, policy.support), context)


def _learned(settings: Settings, support: Tensor | None) -> Learned:
    """What the settings say; `support` is that of the policy."""
    if settings.distribution is None:
        return Means(is_huber=settings.loss == "huber", rescaled=settings.rescale)
    if isinstance(settings.distribution, Quantiles):
        return QuantileReturns(rescaled=settings.rescale)
    assert support is not None
    return AtomReturns(support, rescaled=settings.rescale)
