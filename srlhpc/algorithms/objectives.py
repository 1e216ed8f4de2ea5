"""Gradient steps of rules with several losses that learn at once, such as an actor's and its critics'.

All gradients are those at the parameters before the update. So one collective call adds up everything, and nothing has
moved yet when a number turns out not to be finite.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from srlhpc.algorithms.algorithm import Reducer, check_finite, sum_together
from srlhpc.algorithms.device_numbers import to_host_list
from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.specs.schedule import Schedule, value_at


class Objective:
    """A loss, what it trains and how.

    Args:
        name: its sums have an entry `NAME_loss`, and its metrics begin with the name.
        module: what is trained, and all of it.
        learning_rate: Adam's step size.
        adam_epsilon: Adam's epsilon.
    """

    def __init__(self, name: str, module: nn.Module, learning_rate: Schedule, adam_epsilon: float) -> None:
        self.name, self.learning_rate = name, learning_rate
        self.optimizer = FlatAdam(module, epsilon=adam_epsilon)
        self._parameters = list(module.parameters())

    def differentiate(self, loss: Tensor) -> None:
        """Leaves the gradients of a loss, the sum over this trainer's valid records, in the optimiser.

        No gradient is computed of other modules that the loss goes through, such as critics that an actor follows: that
        saves a ninth of the products of an update of SAC.
        """
        self.optimizer.gradients.zero_()
        torch.autograd.backward(loss, inputs=self._parameters)


class Means(NamedTuple):
    """What is known on the host of one update."""

    metrics: dict[str, float]
    """Means over the valid records of all trainers, and `NAME_gradient_norm` of each objective."""
    valid: float
    """Valid records of all trainers."""


def mean_gradients(
    reducer: Reducer, objectives: Sequence[Objective], sums: Mapping[str, Tensor], valid: Tensor, **others: Tensor
) -> Generator[None, None, Means]:
    """Adds up gradients and sums over all trainers in one call; gradients are those of mean losses afterwards.

    Args:
        reducer: sums over trainers.
        objectives: equal on all trainers; all are differentiated.
        sums: over this trainer's valid records by the names of their means, float32 `[]`; equal names on all trainers.
        valid: whether a record counts, bool.
        others: further metrics, float32 `[1]`, equal on all trainers.

    Raises:
        DivergedError: a loss or the norm of a gradient is not finite.
    """
    totals = torch.stack([*sums.values(), valid.sum(dtype=torch.float32)])
    gradients = [objective.optimizer.gradients for objective in objectives]
    yield from sum_together(reducer, *gradients, totals)
    count = totals[-1].clamp(min=1.0)
    for gradient in gradients:
        gradient /= count
    norms = torch.stack([gradient.norm() for gradient in gradients])
    numbers = yield from to_host_list(torch.cat([totals, norms, *others.values()]))
    found, counted, rest = numbers[: len(sums)], numbers[len(sums)], numbers[len(sums) + 1 :]
    metrics = {name: number / max(counted, 1.0) for name, number in zip(sums, found, strict=True)}
    metrics |= dict(zip([*(_norm(objective) for objective in objectives), *others], rest, strict=True))
    checked = [name for objective in objectives for name in (f"{objective.name}_loss", _norm(objective))]
    check_finite({name: metrics[name] for name in checked})
    return Means(metrics, counted)


def step(objectives: Sequence[Objective], means: Means, steps: int, max_gradient_norm: float | None) -> None:
    """Moves what objectives train along its gradients, scaled down where their norm is above the maximum (None: never).

    Args:
        objectives: those of `mean_gradients`.
        means: what `mean_gradients` gave.
        steps: trained steps, for schedules.
        max_gradient_norm: of each objective by itself.
    """
    for objective in objectives:
        norm = torch.tensor(means.metrics[_norm(objective)])
        objective.optimizer.step(value_at(objective.learning_rate, steps), norm, max_gradient_norm)


def learning_rates(objectives: Sequence[Objective], steps: int) -> dict[str, float]:
    """The metric `NAME_learning_rate` of each objective."""
    return {f"{objective.name}_learning_rate": value_at(objective.learning_rate, steps) for objective in objectives}


def _norm(objective: Objective) -> str:
    return f"{objective.name}_gradient_norm"
