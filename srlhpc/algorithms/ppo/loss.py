"""PPO's loss of one minibatch."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.algorithms.ppo.minibatches import Minibatch
from srlhpc.policies.contracts import Evaluated
from srlhpc.rl.losses import clipped_surrogate, clipped_value_loss, value_loss


class Coefficients(NamedTuple):
    """Numbers of one update, schedules resolved."""

    learning_rate: float
    clip_ratio: float
    value_clip: float | None
    value: float
    entropy: float


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
    """Clipped surrogate, (clipped) value loss and entropy bonus (Schulman et al. 2017, eq. 9; arXiv:1707.06347)."""
    log_probs = evaluated.distribution.log_prob(rows.actions)
    policy = clipped_surrogate(
        log_probs, rows.old_log_probs, rows.advantages, rows.valid, clip_ratio=coefficients.clip_ratio
    )
    if coefficients.value_clip is None:
        value = value_loss(evaluated.values, rows.targets, rows.valid)
    else:
        value = clipped_value_loss(
            evaluated.values, rows.old_values, rows.targets, rows.valid, value_clip=coefficients.value_clip
        )
    entropy = torch.where(rows.valid, evaluated.distribution.entropy(), 0.0).sum()
    total = policy.loss + coefficients.value * value - coefficients.entropy * entropy
    sums = torch.stack([total, policy.loss, value, entropy, policy.kl, policy.clipped.float()]).detach()
    return Loss(total, sums, policy.max_deviation)
