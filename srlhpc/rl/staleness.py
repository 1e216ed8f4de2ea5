"""What data counts that older parameters acted.

Letters: T records of a fragment, B columns.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def lag_weights(lags: Tensor, valid: Tensor, exponent: float) -> Tensor:
    """(1 + lag)^-exponent of valid records, 0 of others; float64 of the shape of both.

    Stellaris (SC 2024) scales learning rates of stale gradients by their staleness to the power of -1/3; here, data is
    stale, and every record has a weight. To be divided by their mean over the valid records of all trainers.

    Args:
        lags: int64 `[T, B]`, updates between the parameters that acted and those of now.
        valid: bool `[T, B]`.
        exponent: 0 gives 1 everywhere.
    """
    return torch.where(valid, (1.0 + lags.double()).pow(-exponent), 0.0)


def bounded_above(log_probs: Tensor, beside: Tensor, stale: Tensor, ratio_clip: float) -> Tensor:
    """Log-probabilities whose ratio to `beside` is at most `ratio_clip` where data is stale, constant above it.

    Args:
        log_probs: float32, with gradient.
        beside: float32, what ratios are to.
        stale: bool; other entries stay as they are.
        ratio_clip: at least 1.
    """
    bound = beside + math.log(ratio_clip)
    return torch.where(stale & (log_probs > bound), bound, log_probs)
