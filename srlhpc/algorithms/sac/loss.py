"""SAC's targets, losses and the temperature's gradient (Haarnoja et al. 2018, arXiv:1812.05905).

Letters: N records, C critics. Losses are sums over valid records; the caller divides by the valid count of all
trainers. An invalid record may hold any number: it reaches neither a sum nor a gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor


def soft_targets(
    rewards: Tensor, terminated: Tensor, values: Tensor, log_probs: Tensor, *, gamma: float, temperature: Tensor
) -> Tensor:
    """What critics shall predict (eq. 2 and 3), with the least of the target critics (Fujimoto et al. 2018).

    y = r + gamma (1 - terminated) (min_c Q'_c(s', a') - alpha log pi(a'|s')),  a' drawn from pi(s').
    A truncated or cut record bootstraps like any other: s' is its real successor.

    Args:
        rewards: float32 `[N]`.
        terminated: bool `[N]`.
        values: of the target critics at s' and a', float32 `[C, N]`.
        log_probs: of a', float32 `[N]`.
        gamma: discount of one step.
        temperature: alpha, float32 `[1]`.

    Returns:
        float32 `[N]`.
    """
    soft_values = torch.addcmul(values.amin(0), temperature, log_probs, value=-1.0)
    return rewards + (gamma * ~terminated) * soft_values


def critic_errors(values: Tensor, targets: Tensor, valid: Tensor) -> Tensor:
    """Q_c(s, a) - y, float32 `[C, N]`; 0 where a record is not valid.

    Args:
        values: of the critics, float32 `[C, N]`.
        targets: y, float32 `[N]`.
        valid: bool `[N]`.
    """
    return torch.where(valid, values - targets, 0.0)


def critic_loss(errors: Tensor, weights: Tensor | None) -> Tensor:
    """Sum of w (Q_c - y)^2 / 2 over critics and records (eq. 5).

    Args:
        errors: from `critic_errors`.
        weights: importance weights w, float32 `[N]`; None: all 1.
    """
    squares = errors.square()
    return 0.5 * (squares if weights is None else weights * squares).sum()


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
