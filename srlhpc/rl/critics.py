"""Errors and losses of several critics that value the same actions.

Letters: N records, C critics. Losses are sums over valid records; the caller divides by the valid count of all
trainers. An invalid record may hold any number: it reaches neither a sum nor a gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor


def critic_errors(values: Tensor, targets: Tensor, valid: Tensor) -> Tensor:
    """Q_c(s, a) - y, float32 `[C, N]`; 0 where a record is not valid.

    Args:
        values: of the critics, float32 `[C, N]`.
        targets: y, float32 `[N]`.
        valid: bool `[N]`.
    """
    return torch.where(valid, values - targets, 0.0)


def critic_loss(errors: Tensor, weights: Tensor | None) -> Tensor:
    """Sum of w (Q_c - y)^2 / 2 over critics and records (Haarnoja et al. 2018, arXiv:1812.05905, eq. 5).

    Args:
        errors: from `critic_errors`.
        weights: importance weights w, float32 `[N]`; None: all 1.
    """
    squares = errors.square()
    return 0.5 * (squares if weights is None else weights * squares).sum()
