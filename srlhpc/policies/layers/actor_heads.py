"""Heads of actors of continuous actions: from features to what is said of actions, and to actions that explore.

Letters: N rows, D dimensions of an action.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from srlhpc.policies.layers.heads import POLICY_GAIN, Float32Linear
from srlhpc.policies.layers.initialization import orthogonal
from srlhpc.policies.policy import Exploration
from srlhpc.rl.deterministic import Deterministic
from srlhpc.rl.squashed_gaussian import Drawn, SquashedGaussian, unsquashed_log_std
from srlhpc.specs.actor_heads import ActorHead, SquashedGaussianHead

_Distribution = TypeVar("_Distribution")


class ActorLayer(Float32Linear, ABC, Generic[_Distribution]):
    """The last layer of an actor; actions are near 0 at first, whatever is seen."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__(features, outputs)
        orthogonal(self, POLICY_GAIN)

    @abstractmethod
    def distribution(self, features: Tensor) -> _Distribution:
        """What is said of actions by features `[N, features]`, with gradients."""

    @abstractmethod
    def mode(self, distribution: _Distribution) -> Drawn:
        """The actions without exploration."""

    @abstractmethod
    def draw(self, distribution: _Distribution, generator: torch.Generator, exploration: Exploration) -> Drawn:
        """Actions as exploration wants them, but for those that it wants uniform."""


class SquashedGaussianLayer(ActorLayer[SquashedGaussian]):
    """Means and standard deviations of a squashed Gaussian.

    Args:
        features: size of its input.
        size: D.
        head: what the rule asks for.
        initial_log_std: logarithm of the standard deviation to start with, inside of `head.log_stds`.
    """

    def __init__(self, features: int, size: int, head: SquashedGaussianHead, initial_log_std: float) -> None:
        super().__init__(features, 2 * size)
        self._log_stds = head.log_stds
        with torch.no_grad():
            self.bias[size:] = unsquashed_log_std(initial_log_std, self._log_stds)

    def distribution(self, features: Tensor) -> SquashedGaussian:
        means, raw = self(features).chunk(2, dim=-1)
        return SquashedGaussian(means, raw, self._log_stds)

    def mode(self, distribution: SquashedGaussian) -> Drawn:
        return distribution.draw(torch.zeros_like(distribution.means))

    def draw(self, distribution: SquashedGaussian, generator: torch.Generator, exploration: Exploration) -> Drawn:
        noise = torch.empty_like(distribution.means).normal_(generator=generator)
        if "noise" in exploration:
            noise *= exploration["noise"].unsqueeze(-1)
        return distribution.draw(noise)


class DeterministicLayer(ActorLayer[Deterministic]):
    """One action for each row.

    Args:
        features: size of its input.
        size: D.
    """

    def distribution(self, features: Tensor) -> Deterministic:
        return Deterministic(self(features))

    def mode(self, distribution: Deterministic) -> Drawn:
        actions = distribution.actions
        return Drawn(actions, actions.new_zeros(len(actions)))

    def draw(self, distribution: Deterministic, generator: torch.Generator, exploration: Exploration) -> Drawn:
        if "std" not in exploration:
            return self.mode(distribution)
        noise = torch.empty_like(distribution.actions).normal_(generator=generator)
        return distribution.explored(noise, exploration["std"])


def actor_layer(features: int, size: int, head: ActorHead, initial_log_std: float) -> ActorLayer[Any]:
    """The layer that a rule asks for; its arguments are those of the layers."""
    if isinstance(head, SquashedGaussianHead):
        return SquashedGaussianLayer(features, size, head, initial_log_std)
    return DeterministicLayer(features, size)
