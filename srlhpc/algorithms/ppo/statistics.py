"""Moments of a batch that all trainers must agree on: one all-reduce before the first gradient step."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.algorithms.gradient_step import check_steps
from srlhpc.algorithms.ppo.loss import SUMS, Loss
from srlhpc.rl.losses import explained_variance, variance

BATCH_SUMS = 6


class BatchStatistics(NamedTuple):
    """Moments over the valid records of all trainers; values in units of the return."""

    valid: float
    advantage_mean: float
    advantage_std: float
    value_mean: float
    return_target_mean: float
    explained_variance: float


def batch_sums(advantages: Tensor, values: Tensor, valid: Tensor) -> Tensor:
    """What `batch_statistics` takes once added over trainers: float64 `[BATCH_SUMS]`, from float32 `[T, B]`."""
    a, v, r = (torch.where(valid, tensor.double(), 0.0) for tensor in (advantages, values, advantages + values))
    count = valid.sum(dtype=torch.float64)
    return torch.stack([count, a.sum(), a.square().sum(), v.sum(), r.sum(), r.square().sum()])


def batch_statistics(sums: list[float]) -> BatchStatistics:
    """Moments from the sums over all trainers; the residual of the explained variance is the advantage."""
    count, advantages, advantage_squares, values, targets, target_squares = sums
    entries = max(count, 1.0)
    advantage_variance = variance(count, advantages, advantage_squares)
    return BatchStatistics(
        valid=count,
        advantage_mean=advantages / entries,
        advantage_std=advantage_variance**0.5,
        value_mean=values / entries,
        return_target_mean=targets / entries,
        explained_variance=explained_variance(variance(count, targets, target_squares), advantage_variance),
    )


class GradientStep(NamedTuple):
    """One gradient step: numbers over all trainers' records of a minibatch unless noted."""

    loss: Loss
    """Loss of this trainer's records."""
    checks: Tensor
    """float32 `[2]`: mean loss, and norm of the gradient before clipping."""


class Epoch(NamedTuple):
    """One pass over the batch, over all trainers' valid records."""

    means: dict[str, float]
    """Means of the entries of `SUMS`, by name."""
    first_deviation: float
    """Largest |ratio - 1| of the first minibatch, added up over trainers."""
    gradient_norm: float
    """Mean over the steps."""


def epoch_of(numbers: list[float], valid_count: float) -> Epoch:
    """Reads an epoch from its numbers: `SUMS`, the first deviation, and the checks of each step, one after the other.

    Raises:
        DivergedError: a check is not finite.
    """
    sums, deviation, checks = numbers[: len(SUMS)], numbers[len(SUMS)], numbers[len(SUMS) + 1 :]
    check_steps(checks)
    norms = checks[1::2]
    means = {name: total / max(valid_count, 1.0) for name, total in zip(SUMS, sums, strict=True)}
    return Epoch(means, deviation, sum(norms) / len(norms))
