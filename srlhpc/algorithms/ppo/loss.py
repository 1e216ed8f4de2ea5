"""PPO's loss of one minibatch."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.algorithms.ppo.minibatches import Minibatch
from srlhpc.policies.contracts import Evaluated
from srlhpc.rl.losses import clipped_surrogate, clipped_value_loss, value_loss
from srlhpc.rl.staleness import bounded_above


class Coefficients(NamedTuple):
    """Numbers of one update, schedules resolved."""

    learning_rate: float
    clip_ratio: float
    value_clip: float | None
    value: float
    entropy: float
    stale_ratio_clip: float | None = None
    decoupled_ratio_clip: float | None = None


class Loss(NamedTuple):
    """Sums over the valid records of a minibatch."""

    total: Tensor
    """Scalar with gradient: policy loss + value coefficient * value loss - entropy coefficient * entropy."""
    sums: Tensor
    """float32 `[6]` without gradient, in the order of `SUMS`."""
    max_deviation: Tensor
    """Largest |ratio - 1|."""


SUMS = ("loss", "policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")
"""Names of `Loss.sums` once divided by the valid count of all trainers."""


def ppo_loss(evaluated: Evaluated, rows: Minibatch, coefficients: Coefficients) -> Loss:
    """Clipped surrogate, (clipped) value loss and entropy bonus (Schulman et al. 2017, eq. 9; arXiv:1707.06347).

    Decoupled (Hilton et al. 2021, eq. 4; arXiv:2110.00641): -(prox / mu) min(r A, clip(r, 1 - eps, 1 + eps) A) with
    r = pi / prox.
    """
    log_probs = evaluated.distribution.log_prob(rows.actions)
    beside, advantages = rows.old_log_probs, rows.advantages
    if rows.proximal is not None:
        ratios = torch.where(rows.valid, rows.proximal - beside, 0.0).exp()
        most = coefficients.decoupled_ratio_clip
        advantages = advantages * (ratios if most is None else ratios.clamp(max=most))
        beside = rows.proximal
    if rows.weights is not None:
        advantages = advantages * rows.weights
    if coefficients.stale_ratio_clip is not None and rows.stale is not None:
        log_probs = bounded_above(log_probs, beside, rows.stale, coefficients.stale_ratio_clip)
    policy = clipped_surrogate(log_probs, beside, advantages, rows.valid, clip_ratio=coefficients.clip_ratio)
    if coefficients.value_clip is None:
        value = value_loss(evaluated.values, rows.targets, rows.valid, weights=rows.weights)
    else:
        value = clipped_value_loss(
            evaluated.values,
            rows.old_values,
            rows.targets,
            rows.valid,
            value_clip=coefficients.value_clip,
            weights=rows.weights,
        )
    entropies = evaluated.distribution.entropy()
    entropy = torch.where(rows.valid, entropies if rows.weights is None else entropies * rows.weights, 0.0).sum()
    total = policy.loss + coefficients.value * value - coefficients.entropy * entropy
    sums = torch.stack([total, policy.loss, value, entropy, policy.kl, policy.clipped.float()]).detach()
    return Loss(total, sums, policy.max_deviation)
