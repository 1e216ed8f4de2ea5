"""What the gradient steps of an epoch tell."""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor

from srlhpc.algorithms.algorithm import DivergedError
from srlhpc.algorithms.ppo.loss import SUMS, Loss


class GradientStep(NamedTuple):
    """One step, over all trainers' records of a minibatch unless noted."""

    loss: Loss
    """Of this trainer's records."""
    checks: Tensor
    """float32 `[2]`: mean loss, and norm of the gradient before clipping."""


class Epoch(NamedTuple):
    """One pass over the batch, over all trainers' valid records."""

    means: dict[str, float]
    """Those of `SUMS`."""
    first_deviation: float
    """Largest |ratio - 1| of the first minibatch, added up over trainers."""
    gradient_norm: float
    """Mean over the steps."""


def epoch_of(numbers: list[float], valid_count: float) -> Epoch:
    """From `SUMS`, the first deviation, and the checks of each step, one after the other.

    Raises:
        DivergedError: a check is not finite.
    """
    sums, deviation, checks = numbers[: len(SUMS)], numbers[len(SUMS)], numbers[len(SUMS) + 1 :]
    losses, norms = checks[::2], checks[1::2]
    for loss, norm in zip(losses, norms, strict=True):
        for name, number in (("loss", loss), ("gradient norm", norm)):
            if not math.isfinite(number):
                raise DivergedError(f"the {name} is {number}")
    means = {name: total / max(valid_count, 1.0) for name, total in zip(SUMS, sums, strict=True)}
    return Epoch(means, deviation, sum(norms) / len(norms))
