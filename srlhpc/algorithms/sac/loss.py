"""SAC's values, its actor's loss and the temperature's gradient (Haarnoja et al. 2018, arXiv:1812.05905).

Letters: N records, C critics. The loss is a sum over valid records; the caller divides by the valid count of all
trainers. An invalid record may hold any number: it reaches neither a sum nor a gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor


def soft_values(values: Tensor, log_probs: Tensor, *, temperature: Tensor) -> Tensor:
    """min_c Q_c(s, a) - alpha log pi(a|s) (eq. 3), with the least of the critics (Fujimoto et al. 2018).

    Args:
        values: of the critics at s and a, float32 `[C, N]`; a was drawn from pi(s).
        log_probs: of a, float32 `[N]`.
        temperature: alpha, float32 `[1]`.
    """
    return torch.addcmul(values.amin(0), temperature, log_probs, value=-1.0)


def actor_loss(log_probs: Tensor, values: Tensor, valid: Tensor, *, temperature: Tensor) -> Tensor:
    """Sum of alpha log pi(a|s) - min_c Q_c(s, a) over records, a drawn from pi(s) with its gradient (eq. 7 and 9).

    Args:
        log_probs: of a, float32 `[N]`.
        values: of the critics at s and a, float32 `[C, N]`.
        valid: bool `[N]`.
        temperature: alpha, float32 `[1]`.
    """
    # The minimum of invalid values may be no number, which a mask behind it would not keep from the gradient.
    least = torch.where(valid, values, 0.0).amin(0)
    return (temperature * torch.where(valid, log_probs, 0.0) - least).sum()


def temperature_gradient(temperature: float, mean_log_prob: float, target_entropy: float) -> float:
    """Derivative of alpha (-log pi - H) by log alpha, mean over records (eq. 18): alpha grows while entropy lacks."""
    return temperature * (-mean_log_prob - target_entropy)
