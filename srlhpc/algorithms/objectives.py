"""The gradient step of a rule: of one loss, or of several that learn at once, such as an actor's and its critics'.

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

LEAST_WEIGHT = 1e-6
"""Stands for a weight of 0, where no record is valid."""


class Objective:
    """A loss, what it trains and how.

    Args:
        name: its sums have an entry `NAME_loss`, and its metrics begin with the name; None: they are `loss` and so on.
        module: what is trained; parameters that take no gradient stay as they are.
        learning_rate: Adam's step size.
        adam_epsilon: Adam's epsilon.
        weight_decay: as in `FlatAdam`.
    """

    def __init__(
        self,
        name: str | None,
        module: nn.Module,
        learning_rate: Schedule,
        adam_epsilon: float,
        weight_decay: float = 0.0,
    ) -> None:
        self._prefix, self.learning_rate = "" if name is None else f"{name}_", learning_rate
        self.optimizer = FlatAdam(module, epsilon=adam_epsilon, weight_decay=weight_decay)
        self._parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]

    def named(self, metric: str) -> str:
        """What a metric of this objective is called."""
        return self._prefix + metric

    def differentiate(self, loss: Tensor) -> None:
        """Leaves the gradients of a loss, the sum over this trainer's valid records, in the optimiser.

        No gradient is computed of other modules that the loss goes through, such as critics that an actor follows: that
        saves a ninth of the products of an update of SAC.
        """
        self.optimizer.gradients.zero_()
        torch.autograd.backward(loss, inputs=self._parameters)


class Means(NamedTuple):
    """What is known on the host of one step."""

    sums: dict[str, float]
    """Over the valid records of all trainers."""
    weight: float
    """What these records weigh: their number, unless the rule says otherwise. Without any nothing has moved."""
    others: dict[str, float]
    """`NAME_gradient_norm` (of the mean loss, before clipping) and `NAME_learning_rate` of each objective, and what the
    rule gave."""

    @property
    def metrics(self) -> dict[str, float]:
        """Means over the valid records of all trainers, norms, rates and what the rule gave."""
        return {name: total / max(self.weight, LEAST_WEIGHT) for name, total in self.sums.items()} | self.others


def mean_step(
    objectives: Sequence[Objective],
    sums: Mapping[str, Tensor],
    weights: Tensor,
    *,
    reducer: Reducer,
    steps: int,
    max_gradient_norm: float | None,
    **others: Tensor,
) -> Generator[None, None, Means]:
    """One step of Adam along the gradients of mean losses over the records of all trainers.

    Args:
        objectives: equal on all trainers; all are differentiated.
        sums: over this trainer's valid records by the names of their means, float32 `[]`, each objective's loss among
            them; equal names on all trainers.
        weights: what each record counts, bool (whether it is valid) or float32; 0 where it is not valid.
        reducer: sums over trainers; one collective call, if there are several.
        steps: trained steps, for schedules.
        max_gradient_norm: of each objective by itself; gradients above it are scaled down. None: never.
        others: further metrics, float32 `[1]`, equal on all trainers.

    Raises:
        DivergedError: a loss or the norm of a gradient is not finite; nothing has moved.
    """
    totals = torch.stack([*sums.values(), weights.sum(dtype=torch.float32)])
    gradients = [objective.optimizer.gradients for objective in objectives]
    yield from sum_together(reducer, *gradients, totals)
    # By the records of all trainers: the gradients are those of mean losses.
    weight = totals[-1].clamp(min=LEAST_WEIGHT)
    for gradient in gradients:
        gradient /= weight
    norms = torch.stack([gradient.norm() for gradient in gradients])
    numbers = iter((yield from to_host_list(torch.cat([totals, norms, *others.values()]))))
    found = {name: next(numbers) for name in sums}
    weighed = next(numbers)
    told = {objective.named("gradient_norm"): next(numbers) for objective in objectives}
    told |= {name: next(numbers) for name in others}
    rates = [value_at(objective.learning_rate, steps) for objective in objectives]
    told |= {objective.named("learning_rate"): rate for objective, rate in zip(objectives, rates, strict=True)}
    means = Means(found, weighed, told)
    metrics = means.metrics
    checked = [objective.named(metric) for objective in objectives for metric in ("loss", "gradient_norm")]
    check_finite({name: metrics[name] for name in checked})
    # Without a valid record nothing is learnt, though moments of before would move on.
    if means.weight:
        for objective, rate, norm in zip(objectives, rates, norms, strict=True):
            objective.optimizer.step(rate, norm, max_gradient_norm)
    return means
