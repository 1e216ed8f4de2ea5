"""Losses of distributions of returns: quantiles, and probabilities of fixed returns.

Letters: `...` any leading axes, Q quantiles, P target samples, J atoms.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def quantile_huber_loss(quantiles: Tensor, targets: Tensor, *, threshold: float = 1.0) -> Tensor:
    """Quantile regression with a smooth middle (Dabney et al. 2018, eq. 9 and 10; arXiv:1710.10044).

    loss = sum_i mean_j |tau_i - 1[u_ij < 0]| H(u_ij) / kappa,  u_ij = target_j - quantile_i,  tau_i = (i + 1/2) / Q,
    H(u) = u^2 / 2 if |u| <= kappa, else kappa (|u| - kappa / 2).

    Args:
        quantiles: float32 `[..., Q]`, with gradient.
        targets: float32 `[..., P]`, samples of equal weight, without gradient.
        threshold: kappa, above 0.

    Returns:
        Loss, float32 `[...]`.
    """
    count = quantiles.shape[-1]
    middles = (torch.arange(count, dtype=quantiles.dtype, device=quantiles.device) + 0.5) / count
    errors = targets.unsqueeze(-2) - quantiles.unsqueeze(-1)
    huber = functional.huber_loss(errors, torch.zeros_like(errors), reduction="none", delta=threshold)
    weights = (middles.unsqueeze(-1) - (errors.detach() < 0).to(errors.dtype)).abs()
    return (weights * huber / threshold).mean(-1).sum(-1)


@torch.no_grad()
def project(probabilities: Tensor, returns: Tensor, support: Tensor) -> Tensor:
    """Moves the mass of a distribution onto fixed atoms (Bellemare et al. 2017, algorithm 1; arXiv:1707.06887).

    The mass of a return between two atoms is shared by its distances to them; beyond the ends it goes to the last
    atom. m_i = sum_j [1 - |clip(returns_j) - z_i| / dz]_0^1 p_j (eq. 7), so a return upon an atom keeps its mass.

    Args:
        probabilities: float32 `[..., J]`.
        returns: float32 `[..., J]`, where that mass is.
        support: float32 `[J]`, ascending at equal distances.

    Returns:
        Mass of each atom of the support, float32 `[..., J]`.
    """
    lowest, highest = support[0], support[-1]
    distance = (highest - lowest) / (len(support) - 1)
    places = (torch.clamp(returns, lowest, highest) - lowest) / distance
    below = places.floor().clamp_(0, len(support) - 1)
    share_above = places - below
    above = (below + 1).clamp_(max=len(support) - 1)
    mass = torch.zeros_like(probabilities)
    mass.scatter_add_(-1, below.long(), probabilities * (1 - share_above))
    mass.scatter_add_(-1, above.long(), probabilities * share_above)
    return mass


def cross_entropy(targets: Tensor, log_probs: Tensor) -> Tensor:
    """-sum_j m_j log p_j: the divergence of p from m but for what does not depend on p.

    Args:
        targets: probabilities m, float32 `[..., J]`, without gradient.
        log_probs: log p, float32 `[..., J]`.

    Returns:
        float32 `[...]`.
    """
    return -(targets * log_probs).sum(-1)
