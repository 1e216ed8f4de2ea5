"""The loss of one minibatch in the auxiliary phase."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.policies.phasic import PhasicEvaluated
from srlhpc.rl.losses import value_loss


class Loss(NamedTuple):
    """Sums over the valid records of a minibatch."""

    total: Tensor
    """Scalar with gradient."""
    sums: Tensor
    """float32 `[3]` without gradient, in the order of `SUMS`."""


SUMS = ("auxiliary_value_loss", "auxiliary_true_value_loss", "auxiliary_kl")
"""Names of `Loss.sums` once divided by the valid count of all trainers."""


def auxiliary_loss(
    said: PhasicEvaluated,
    old: Tensor,
    targets: Tensor,
    valid: Tensor,
    *,
    kl_coefficient: float,
    true_value_coefficient: float,
) -> Loss:
    """Features learn the value while the policy stays (Cobbe et al. 2020, section 2; arXiv:2009.04416).

    1/2 (V_aux - V_targ)^2 + beta KL(pi_old || pi) + c 1/2 (V - V_targ)^2; c is 1 in the paper.

    Args:
        said: of the records, by the parameters of now; `[T, B]`, or `[N]` of shuffled ones.
        old: `numbers` of the distributions at the beginning of the phase, float32 of the same shape, and `[..., F]`.
        targets: V_targ, float32 in units of the value head.
        valid: bool; other records count in nothing.
        kl_coefficient: beta.
        true_value_coefficient: c.
    """
    auxiliary = value_loss(said.auxiliary_values, targets, valid)
    true = value_loss(said.values, targets, valid)
    divergence = torch.where(valid, said.distribution.like(old).kl(said.distribution), 0.0).sum()
    total = auxiliary + kl_coefficient * divergence + true_value_coefficient * true
    return Loss(total, torch.stack([auxiliary, true, divergence]).detach())
