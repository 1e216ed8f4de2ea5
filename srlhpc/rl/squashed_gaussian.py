"""A Gaussian squashed into [-1, 1] by a hyperbolic tangent (Haarnoja et al. 2018, arXiv:1812.05905, appendix C).

Letters: `...` any leading axes, D dimensions of an action.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_LOG_TWO = math.log(2.0)


class Drawn(NamedTuple):
    """One action of each entry; both carry gradients to mean and standard deviation."""

    actions: Tensor
    """float32 `[..., D]` in [-1, 1]."""
    log_probs: Tensor
    """Log-density of the actions, float32 `[...]`, summed over dimensions."""


class SquashedGaussian:
    """Actions a = tanh(u), u ~ N(mean, std), with independent dimensions.

    Computed in float32 whatever comes in. Its entropy has no closed form: minus the log-density of a drawn action is an
    unbiased estimate.

    Args:
        means: means of u, `[..., D]`.
        squashed_log_stds: any real numbers `[..., D]`; a hyperbolic tangent takes them into the range of `log_stds`.
        log_stds: least and greatest logarithm of the standard deviation of u.
    """

    def __init__(self, means: Tensor, squashed_log_stds: Tensor, log_stds: tuple[float, float]) -> None:
        self.means = means.float()
        self._raw = squashed_log_stds.float()
        self._range = log_stds

    def draw(self, noise: Tensor) -> Drawn:
        """Actions for given standard normal noise, differentiable by the reparametrisation u = mean + std * noise.

        log p(a) = log N(u) - sum log(1 - tanh(u)^2), the latter as 2 (log 2 - u - softplus(-2 u)), which stays exact
        where tanh(u) is 1 in float32.

        Args:
            noise: float32 `[..., D]`, standard normal; zeros give `mode` and its log-density.
        """
        return Drawn(*_Draw.apply(self.means, self._raw, noise, *self._range))  # type: ignore[no-untyped-call]

    def mode(self) -> Tensor:
        """tanh of the mean, what is usually acted on in evaluation; no gradient."""
        return torch.tanh(self.means.detach())

    @property
    def log_stds(self) -> Tensor:
        """Logarithms of the standard deviations of u, float32 `[..., D]`."""
        low, high = self._range
        return low + 0.5 * (high - low) * (torch.tanh(self._raw) + 1)


def unsquashed_log_std(log_std: float, log_stds: tuple[float, float]) -> float:
    """The number that `SquashedGaussian` takes to this logarithm of a standard deviation, inside of its range."""
    low, high = log_stds
    return math.atanh(2 * (log_std - low) / (high - low) - 1)


class _Draw(torch.autograd.Function):
    """The gradient by hand takes a third of the kernels: on a CPU, small networks cost mostly their calls.

    With fixed noise e: du = dmean + std e dlog_std, da = (1 - a^2) du, dlog p = 2 a du - dlog_std (in each dimension).
    """

    @staticmethod
    def forward(ctx: Any, means: Tensor, raw: Tensor, noise: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
        half = 0.5 * (high - low)
        squashed = torch.tanh(raw)
        log_stds = squashed * half + (low + half)
        offsets = log_stds.exp().mul_(noise)
        unbounded = offsets + means
        actions = torch.tanh(unbounded)
        # -log(1 - tanh(u)^2) = 2 (u + softplus(-2 u) - log 2)
        terms = functional.softplus(-2.0 * unbounded).add_(unbounded).mul_(2.0)
        terms.sub_(log_stds).addcmul_(noise, noise, value=-0.5)
        log_probs = terms.sum(-1).sub_(means.shape[-1] * (_HALF_LOG_TWO_PI + 2.0 * _LOG_TWO))
        ctx.save_for_backward(actions, squashed, offsets)
        ctx.half = half
        return actions, log_probs

    @staticmethod
    def backward(ctx: Any, by_action: Tensor, by_log_prob: Tensor) -> tuple[Tensor | None, ...]:
        actions, squashed, offsets = ctx.saved_tensors
        by_log_prob = by_log_prob.unsqueeze(-1)
        by_mean = by_action.addcmul(by_action * actions, actions, value=-1.0).addcmul_(actions, by_log_prob, value=2.0)
        by_log_std = (by_mean * offsets).sub_(by_log_prob)
        by_raw = by_log_std.mul_(squashed.square().neg_().add_(1.0)).mul_(ctx.half)
        return by_mean, by_raw, None, None, None
