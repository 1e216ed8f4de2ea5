"""What is learnt of the return of an action: its mean, its quantiles, or the probabilities of fixed returns.

Letters: T trained records, B columns, P numbers of a distribution; `...` is `[T, B]` for means and `[T, B, P]` else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn import functional

from srlhpc.rl.distributional import cross_entropy, project, quantile_huber_loss
from srlhpc.rl.td import NStep
from srlhpc.rl.value_rescaling import rescale, unscale

_GREATEST_CROSS_ENTROPY = 100.0
"""Greater ones are priorities no more: dqn_zoo's Rainbow clips them so."""


class Learned(ABC):
    """How values of one kind become targets, and how far they are from them."""

    @abstractmethod
    def targets(self, steps: NStep[Tensor], values: Tensor) -> Tensor:
        """Targets float32 `...`, of the values `...` of what follows."""

    @abstractmethod
    def losses(self, values: Tensor, targets: Tensor) -> Tensor:
        """Loss of each record, `[T, B]`, with gradient."""

    @abstractmethod
    def means(self, values: Tensor) -> Tensor:
        """Expected values, `[T, B]`, of values that have gradients or not."""

    @abstractmethod
    def target_means(self, targets: Tensor) -> Tensor:
        """Expected values of targets, `[T, B]`."""

    def sizes(self, values: Tensor, targets: Tensor, losses: Tensor) -> Tensor:  # noqa: ARG002
        """What an error is worth as a priority, `[T, B]`, never negative."""
        return (self.target_means(targets) - self.means(values)).abs()


class Means(Learned):
    """The expected return alone."""

    def __init__(self, *, is_huber: bool, rescaled: bool) -> None:
        self._is_huber, self._rescaled = is_huber, rescaled

    def targets(self, steps: NStep[Tensor], values: Tensor) -> Tensor:
        return bellman(steps, values, rescaled=self._rescaled)

    def losses(self, values: Tensor, targets: Tensor) -> Tensor:
        if self._is_huber:
            return functional.huber_loss(values, targets, reduction="none")
        return 0.5 * (targets - values).square()

    def means(self, values: Tensor) -> Tensor:
        return values

    def target_means(self, targets: Tensor) -> Tensor:
        return targets


class QuantileReturns(Learned):
    """Quantiles of the return, which are learnt from those of what follows."""

    def __init__(self, *, rescaled: bool) -> None:
        self._rescaled = rescaled

    def targets(self, steps: NStep[Tensor], values: Tensor) -> Tensor:
        return bellman(steps, values, rescaled=self._rescaled)

    def losses(self, values: Tensor, targets: Tensor) -> Tensor:
        return quantile_huber_loss(values, targets)

    def means(self, values: Tensor) -> Tensor:
        return values.mean(-1)

    def target_means(self, targets: Tensor) -> Tensor:
        return targets.mean(-1)


class AtomReturns(Learned):
    """Probabilities of fixed returns; values are log-probabilities, targets probabilities."""

    def __init__(self, support: Tensor, *, rescaled: bool) -> None:
        self._support, self._rescaled = support, rescaled

    def targets(self, steps: NStep[Tensor], values: Tensor) -> Tensor:
        returns = bellman(steps, self._support.expand_as(values), rescaled=self._rescaled)
        return project(values.exp(), returns, self._support)

    def losses(self, values: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(targets, values)

    def means(self, values: Tensor) -> Tensor:
        return (values.exp() * self._support).sum(-1)

    def target_means(self, targets: Tensor) -> Tensor:
        return (targets * self._support).sum(-1)

    def sizes(self, values: Tensor, targets: Tensor, losses: Tensor) -> Tensor:  # noqa: ARG002
        return losses.detach().clamp(0.0, _GREATEST_CROSS_ENTROPY)


@torch.no_grad()
def bellman(steps: NStep[Tensor], values: Tensor, *, rescaled: bool) -> Tensor:
    """sums + discounts * values, or h(sums + discounts * h^-1(values)), in float64 inside.

    Args:
        steps: float64 `[T, B]` each.
        values: float32 `[T, B]` or `[T, B, P]`.
        rescaled: whether values are on the scale h.

    Returns:
        float32, shaped as `values`.
    """
    sums, discounts = steps.sums, steps.discounts
    if values.ndim > sums.ndim:
        sums, discounts = sums.unsqueeze(-1), discounts.unsqueeze(-1)
    later = values.double()
    if rescaled:
        return rescale(sums + discounts * unscale(later)).float()
    return (sums + discounts * later).float()
