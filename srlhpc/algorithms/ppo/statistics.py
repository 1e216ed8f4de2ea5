"""Moments of a batch that all trainers must agree on: one all-reduce before the first gradient step."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.rl.losses import explained_variance, variance

BATCH_SUMS = 6


class BatchStatistics(NamedTuple):
    """Over the valid records of all trainers; values in units of the return."""

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
