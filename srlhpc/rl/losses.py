"""Losses as sums over valid entries; the caller divides by the valid count of all trainers.

An invalid entry may hold anything finite or not: it reaches neither a sum nor a gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Surrogate(NamedTuple):
    """Sums over valid entries (scalars); only `loss` carries a gradient."""

    loss: Tensor
    kl: Tensor
    """k3 estimates of KL(behaviour || target)."""
    clipped: Tensor
    """Entries whose ratio lies outside the clip range."""
    max_deviation: Tensor
    """Largest |ratio - 1|, no sum."""


def clipped_surrogate(
    log_probs: Tensor, old_log_probs: Tensor, advantages: Tensor, valid: Tensor, *, clip_ratio: float
) -> Surrogate:
    """PPO's clipped objective, negated (Schulman et al. 2017, eq. 7; arXiv:1707.06347).

    loss = -sum min(r A, clip(r, 1 - eps, 1 + eps) A),  r = exp(log_probs - old_log_probs).
    The KL estimate is k3 = (r - 1) - log r (Schulman 2020, "Approximating KL divergence"): unbiased, never negative.

    Args:
        log_probs, old_log_probs, advantages: float32, one shape.
        valid: bool, the same shape.
        clip_ratio: eps.
    """
    return Surrogate(*_ClippedSurrogate.apply(log_probs, old_log_probs, advantages, valid, clip_ratio))  # type: ignore[no-untyped-call]


def value_loss(values: Tensor, targets: Tensor, valid: Tensor, *, weights: Tensor | None = None) -> Tensor:
    """Sum of 0.5 * (V - target)^2 over valid entries, by their weights if there are any."""
    if weights is not None:
        roots = weights.sqrt()
        values, targets = values * roots, targets * roots
    loss: Tensor = _ValueLoss.apply(values, targets, valid)  # type: ignore[no-untyped-call]
    return loss


def clipped_value_loss(
    values: Tensor,
    old_values: Tensor,
    targets: Tensor,
    valid: Tensor,
    *,
    value_clip: float,
    weights: Tensor | None = None,
) -> Tensor:
    """Sum of 0.5 * max((V - target)^2, (clip(V, V_old +- value_clip) - target)^2) over valid entries.

    With `weights`, each entry counts so much. The pessimistic bound of OpenAI's baselines; see Huang et al. 2022,
    "The 37 implementation details of PPO", 9.
    """
    changes = torch.where(valid, values - old_values, 0.0).clamp(-value_clip, value_clip)
    errors = torch.where(valid, values - targets, 0.0)
    clipped_errors = torch.where(valid, old_values + changes - targets, 0.0)
    losses = torch.maximum(errors.square(), clipped_errors.square())
    return 0.5 * (losses if weights is None else losses * weights).sum()


class _ClippedSurrogate(torch.autograd.Function):
    """The gradient is found beside the loss, in a third of the kernels that autograd would run: on a CPU, a minibatch
    of a small network costs mostly their calls."""

    @staticmethod
    def forward(
        ctx: Any, log_probs: Tensor, old_log_probs: Tensor, advantages: Tensor, valid: Tensor, clip_ratio: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        log_ratios = torch.where(valid, log_probs - old_log_probs, 0.0)
        ratios = log_ratios.exp()
        advantages = torch.where(valid, advantages, 0.0)
        gains = ratios * advantages
        clipped_gains = ratios.clamp(1 - clip_ratio, 1 + clip_ratio).mul_(advantages)
        # A clipped gain that is the smaller one does not depend on the policy; d ratio / d log_prob = ratio.
        ctx.save_for_backward(torch.where(gains <= clipped_gains, gains, 0.0).neg_())
        # The gradient is saved, so `ratios` may be overwritten.
        deviations = ratios.sub_(1)
        kl = (deviations - log_ratios).sum()
        sizes = deviations.abs_()
        numbers = kl, (sizes > clip_ratio).sum(), sizes.max()
        ctx.mark_non_differentiable(*numbers)
        return -torch.minimum(gains, clipped_gains).sum(), *numbers

    @staticmethod
    def backward(ctx: Any, loss: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * loss, None, None, None, None


class _ValueLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, targets: Tensor, valid: Tensor) -> Tensor:
        errors = torch.where(valid, values - targets, 0.0)
        ctx.save_for_backward(errors)
        return 0.5 * errors.square().sum()

    @staticmethod
    def backward(ctx: Any, loss: Tensor) -> tuple[Tensor | None, ...]:
        (errors,) = ctx.saved_tensors
        return errors * loss, None, None


def variance(count: float, total: float, total_of_squares: float) -> float:
    """Variance from sums that were added over trainers; 0 without entries, never negative."""
    if count == 0:
        return 0.0
    mean = total / count
    return max(0.0, total_of_squares / count - mean * mean)


def explained_variance(target_variance: float, residual_variance: float) -> float:
    """1 - Var(target - V) / Var(target): 1 is perfect, 0 no better than a constant; 0 where targets do not vary."""
    return 1.0 - residual_variance / target_variance if target_variance > 0 else 0.0
