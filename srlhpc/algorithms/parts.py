"""Gradient steps of rules with several parts that learn at once, such as an actor and its critics.

All gradients are those at the parameters before the update. So one collective call adds up everything, and nothing has
moved yet when a number turns out not to be finite.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Reducer, check_finite, sum_together
from srlhpc.algorithms.device_numbers import to_host_list
from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.specs.schedule import Schedule, value_at


class Part(NamedTuple):
    """What has a loss and an optimiser of its own."""

    name: str
    """Its sums have an entry `NAME_loss`."""
    optimizer: FlatAdam
    """`gradients` are those of the sum of the loss over this trainer's valid records."""
    learning_rate: Schedule


class Means(NamedTuple):
    """What is known on the host of one update."""

    metrics: dict[str, float]
    """Means over the valid records of all trainers, and `NAME_gradient_norm` of each part."""
    valid: float
    """Valid records of all trainers."""


def mean_gradients(
    reducer: Reducer, parts: Sequence[Part], sums: Mapping[str, Tensor], valid: Tensor, **others: Tensor
) -> Generator[None, None, Means]:
    """Adds up gradients and sums over all trainers in one call; gradients are those of mean losses afterwards.

    Args:
        reducer: sums over trainers.
        parts: equal on all trainers.
        sums: over this trainer's valid records by the names of their means, float32 `[]`; equal names on all trainers.
        valid: whether a record counts, bool.
        others: further metrics, float32 `[1]`, equal on all trainers.

    Raises:
        DivergedError: a loss or the norm of a gradient is not finite.
    """
    totals = torch.stack([*sums.values(), valid.sum(dtype=torch.float32)])
    gradients = [part.optimizer.gradients for part in parts]
    yield from sum_together(reducer, *gradients, totals)
    count = totals[-1].clamp(min=1.0)
    for gradient in gradients:
        gradient /= count
    norms = torch.stack([gradient.norm() for gradient in gradients])
    numbers = yield from to_host_list(torch.cat([totals, norms, *others.values()]))
    found, counted, rest = numbers[: len(sums)], numbers[len(sums)], numbers[len(sums) + 1 :]
    metrics = {name: number / max(counted, 1.0) for name, number in zip(sums, found, strict=True)}
    metrics |= dict(zip([*(_norm(part) for part in parts), *others], rest, strict=True))
    check_finite({name: metrics[name] for part in parts for name in (f"{part.name}_loss", _norm(part))})
    return Means(metrics, counted)


def step(parts: Sequence[Part], means: Means, steps: int, max_gradient_norm: float | None) -> None:
    """Moves all parts along their gradients, scaled down if the norm of one is above the maximum (None: never).

    Args:
        parts: those of `mean_gradients`.
        means: what `mean_gradients` gave.
        steps: trained steps, for schedules.
        max_gradient_norm: of each part by itself.
    """
    for part in parts:
        norm = torch.tensor(means.metrics[_norm(part)])
        part.optimizer.step(value_at(part.learning_rate, steps), norm, max_gradient_norm)


def learning_rates(parts: Sequence[Part], steps: int) -> dict[str, float]:
    """The metric `NAME_learning_rate` of each part."""
    return {f"{part.name}_learning_rate": value_at(part.learning_rate, steps) for part in parts}


def _norm(part: Part) -> str:
    return f"{part.name}_gradient_norm"
