"""One DQN update: a batch of windows, one gradient step.

Letters: R records of a window, T trained ones, B columns of this trainer.

Collective call, the same on all trainers: gradients with what the metrics are made of, before the step.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, Update, check_finite, sum_together
from srlhpc.algorithms.device_numbers import to_host_list
from srlhpc.algorithms.dqn.learned import learned
from srlhpc.algorithms.dqn.settings import Settings
from srlhpc.algorithms.dqn.windows import sums, trained, values
from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.algorithms.target_network import TargetNetwork
from srlhpc.policies.contracts import ActionValuePolicy
from srlhpc.rl.td import priorities
from srlhpc.specs.schedule import value_at

_TARGET = "target"
_SUMS = ("loss", "q_mean", "q_target_mean", "td_error")
"""Metrics that are means over the valid trained records of all trainers."""


class _Losses(NamedTuple):
    total: Tensor
    """Sum over valid records, by the weights of their windows, with gradient."""
    sums: Tensor
    """float32 `[len(_SUMS) + 1]`: sums over valid records, then their number."""
    priorities: Tensor
    """float32 `[B]`."""


class Dqn(Algorithm):
    """Deep Q-learning of a policy of action values."""

    def __init__(self, settings: Settings, policy: ActionValuePolicy, context: Context) -> None:
        self._settings = settings
        self._policy = policy
        self._context = context
        self._optimizer = FlatAdam(policy, epsilon=settings.adam_epsilon)
        self._target = TargetNetwork(policy, self._optimizer)
        self._learned = learned(settings, policy.support)

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        settings, optimizer = self._settings, self._optimizer
        losses = self._losses(batch)
        gradients = optimizer.gradients
        gradients.zero_()
        torch.autograd.backward(losses.total)
        yield
        totals = losses.sums
        yield from sum_together(self._context.reducer, gradients, totals)
        # By the valid records of all trainers: the gradient is that of the mean loss.
        means = totals / totals[-1].clamp(min=1.0)
        gradients.div_(totals[-1].clamp(min=1.0))
        norm = gradients.norm()
        numbers = yield from to_host_list(torch.cat([means[:-1], norm.reshape(1)]))
        metrics = dict(zip((*_SUMS, "gradient_norm"), numbers, strict=True))
        check_finite({name: metrics[name] for name in ("loss", "gradient_norm")})
        learning_rate = value_at(settings.learning_rate, batch.steps)
        optimizer.step(learning_rate, norm, settings.max_gradient_norm)
        if (batch.version + 1) % settings.target_every_updates == 0:
            self._target.follow(settings.polyak)
        return Update(
            metrics | {"learning_rate": learning_rate, "epsilon": self._epsilon(batch.steps)},
            feedback=losses.priorities,
        )

    def state(self) -> Mapping[str, Tensor]:
        return {**self._optimizer.state(), _TARGET: self._target.parameters}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        if _TARGET not in state:
            raise ValueError(f"state of dqn has no {_TARGET}")
        self._target.load(state[_TARGET])
        self._optimizer.load_state({name: tensor for name, tensor in state.items() if name != _TARGET})

    def _losses(self, batch: Batch) -> _Losses:
        settings, kind = self._settings, self._learned
        steps = sums(batch, gamma=settings.gamma, n=settings.n_steps)
        with self._context.arithmetic():
            pair = values(self._policy, self._target.module, batch, steps.lengths, double=settings.double)
        targets = kind.targets(steps, pair.later)
        losses = kind.losses(pair.taken, targets)
        valid = batch.valid[trained(batch)]
        weighted = losses if batch.weights is None else losses * batch.weights
        total = torch.where(valid, weighted, 0.0).sum()
        with torch.no_grad():
            sizes = kind.sizes(pair.taken, targets, losses)
            told = (weighted, kind.means(pair.taken), kind.target_means(targets), sizes, torch.ones_like(sizes))
            counted = torch.where(valid, torch.stack(told), 0.0)
            found = priorities(counted[_SUMS.index("td_error")], valid, max_share=settings.priority_max_share)
            return _Losses(total, counted.flatten(1).sum(1), found)

    def _epsilon(self, steps: int) -> float:
        """Mean over all columns."""
        columns = self._context.columns
        return float(self._settings.explore(np.arange(columns), columns, steps)["epsilon"].mean())
