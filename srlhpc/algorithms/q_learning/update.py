"""One gradient step of values of actions towards their targets, whichever values a rule compares.

Letters: T trained records of a window, B columns of this trainer.

Collective call, the same on all trainers: gradients with what the metrics are made of, before the step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, Update
from srlhpc.algorithms.named_tensors import put_back
from srlhpc.algorithms.objectives import Objective, mean_step
from srlhpc.algorithms.q_learning.learned import Learned
from srlhpc.algorithms.q_learning.windows import Pair
from srlhpc.algorithms.target_network import TargetNetwork
from srlhpc.environment import FloatArray
from srlhpc.rl.td import NStep, priorities
from srlhpc.specs.schedule import Schedule


class Values(NamedTuple):
    """What a batch says of the values that are learnt."""

    steps: NStep[Tensor]
    """Sums of rewards, `[T, B]`."""
    pair: Pair
    """Values of what was done and of what followed."""
    valid: Tensor
    """Whether a record counts, bool `[T, B]`."""


class QSettings(Protocol):
    """What the step takes of a rule's settings."""

    @property
    def learning_rate(self) -> Schedule: ...
    @property
    def target_every_updates(self) -> int: ...
    @property
    def polyak(self) -> float: ...
    @property
    def max_gradient_norm(self) -> float | None: ...
    @property
    def adam_epsilon(self) -> float: ...
    @property
    def priority_max_share(self) -> float: ...
    def explore(self, columns: NDArray[np.int64], total: int, steps: int) -> Mapping[str, FloatArray]: ...


class _Losses(NamedTuple):
    total: Tensor
    """Sum over valid records, by the weights of their windows, with gradient."""
    sums: dict[str, Tensor]
    """Sums over the valid records of what metrics are means of, float32 `[]`."""
    valid: Tensor
    """Whether a record counts, bool `[T, B]`."""
    priorities: Tensor
    """float32 `[B]`."""


class QLearning(Algorithm):
    """Q-learning with a target network.

    Args:
        settings: of the rule.
        online: all that is trained; what acts has its first parameters.
        values: what a batch says of the values of `online` and of its target, a copy of the same form.
        learned: how values become targets and losses.
        context: of the trainer.
        beside: the part of `online` that does not act, with its last parameters; None: all of it acts.
    """

    def __init__(
        self,
        settings: QSettings,
        online: nn.Module,
        values: Callable[[nn.Module, Batch], Values],
        learned: Learned,
        context: Context,
        beside: nn.Module | None = None,
    ) -> None:
        self._settings, self._context = settings, context
        self._values, self._learned = values, learned
        self._objective = Objective(None, online, settings.learning_rate, settings.adam_epsilon)
        self._target = TargetNetwork(online, self._objective.optimizer)
        own = 0 if beside is None else sum(parameter.numel() for parameter in beside.parameters())
        flat = self._objective.optimizer.parameters
        self._beside = flat[len(flat) - own :]

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        settings = self._settings
        losses = self._losses(batch)
        self._objective.differentiate(losses.total)
        yield
        means = yield from mean_step(
            [self._objective],
            losses.sums,
            losses.valid,
            reducer=self._context.reducer,
            steps=batch.steps,
            max_gradient_norm=settings.max_gradient_norm,
        )
        if (batch.version + 1) % settings.target_every_updates == 0:
            self._target.follow(settings.polyak)
        return Update(means.metrics | {"epsilon": self._epsilon(batch.steps)}, feedback=losses.priorities)

    def _losses(self, batch: Batch) -> _Losses:
        kind = self._learned
        steps, pair, valid = self._values(self._target.module, batch)
        targets = kind.targets(steps, pair.later)
        losses = kind.losses(pair.taken, targets)
        weighted = losses if batch.weights is None else losses * batch.weights
        total = torch.where(valid, weighted, 0.0).sum()
        with torch.no_grad():
            sizes = kind.sizes(pair.taken, targets, losses)
            told = {
                "loss": weighted,
                "q_mean": kind.means(pair.taken),
                "q_target_mean": kind.target_means(targets),
                "td_error": sizes,
            }
            counted = {name: torch.where(valid, numbers, 0.0) for name, numbers in told.items()}
            found = priorities(counted["td_error"], valid, max_share=self._settings.priority_max_share)
            # A reward of 1e38 makes an error that float32 lacks, but it is a priority as any other.
            found = found.clamp(max=torch.finfo(found.dtype).max)
            return _Losses(total, {name: numbers.sum() for name, numbers in counted.items()}, valid, found)

    def _epsilon(self, steps: int) -> float:
        """Mean over all columns."""
        columns = self._context.columns
        return float(self._settings.explore(np.arange(columns), columns, steps)["epsilon"].mean())

    def state(self) -> Mapping[str, Tensor]:
        beside = {"beside": self._beside} if len(self._beside) else {}
        return {**self._objective.optimizer.state(), "target": self._target.parameters, **beside}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        put_back(self.state(), state, "state of the rule")
