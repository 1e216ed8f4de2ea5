"""The loss of TD3's actor (Fujimoto et al. 2018, arXiv:1802.09477)."""

from __future__ import annotations

import torch
from torch import Tensor


def actor_loss(values: Tensor, valid: Tensor) -> Tensor:
    """Sum of -Q_1(s, pi(s)) over valid records (algorithm 1); the caller divides by the valid count of all trainers.

    An invalid record may hold any number: it reaches neither the sum nor a gradient.

    Args:
        values: Q_1(s, pi(s)) of the first critic with the gradient to the actor, float32 `[N]`.
        valid: bool `[N]`.
    """
    return torch.where(valid, values, 0.0).sum().neg()
