"""Deterministic actions in [-1, 1], and Gaussian noise on them (Fujimoto et al. 2018, arXiv:1802.09477).

Letters: `...` any leading axes, D dimensions of an action.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from srlhpc.rl.squashed_gaussian import Drawn

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class Deterministic:
    """Actions a = tanh(x), computed in float32 whatever comes in.

    Args:
        unbounded: x, any real numbers `[..., D]`.
    """

    def __init__(self, unbounded: Tensor) -> None:
        self.actions = torch.tanh(unbounded.float())
        """float32 `[..., D]`, with gradients."""

    def explored(self, noise: Tensor, stds: Tensor) -> Drawn:
        """clip(a + std * noise, -1, 1), as acting explores (algorithm 1).

        Its log-density is that before clipping, which piles up what lies outside at the bounds:
        log p = sum over dimensions of -noise^2 / 2 - log std - log(2 pi) / 2; 0 where the standard deviation is 0.

        Args:
            noise: float32 `[..., D]`, standard normal.
            stds: float32 `[...]`.
        """
        scales = stds.unsqueeze(-1)
        actions = (self.actions + scales * noise).clamp(-1.0, 1.0)
        log_probs = (-0.5 * noise.square() - scales.log() - _HALF_LOG_TWO_PI).sum(-1)
        return Drawn(actions, torch.where(stds > 0, log_probs, 0.0))

    def smoothed(self, noise: Tensor, *, std: float, clip: float) -> Tensor:
        """clip(a + clip(std * noise, -clip, clip), -1, 1): similar actions shall have similar values (eq. 14 and 15).

        Args:
            noise: float32 `[..., D]`, standard normal.
            std: standard deviation of the noise.
            clip: most that it moves an action in each dimension.
        """
        return (self.actions + (std * noise).clamp(-clip, clip)).clamp(-1.0, 1.0)
