"""Heads: from features to a distribution over actions, to a value, and to values of actions.

They compute in float32 under autocast too: bfloat16 has 8 significant bits, too few for log-probabilities and values.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from srlhpc.environment import ActionSpace, Continuous, Discrete, MultiDiscrete
from srlhpc.policies.contracts import ActionValues
from srlhpc.policies.layers.initialization import orthogonal
from srlhpc.rl.action_choice import allowed
from srlhpc.rl.distributions import Categorical, DiagonalGaussian, Distribution, MultiCategorical
from srlhpc.specs.action_values import ActionValueHead, Atoms

POLICY_GAIN = 0.01
"""Gain of the weights of layers that say what is acted, so that all actions are alike at first."""
_VALUE_GAIN = 1.0


class Float32Linear(nn.Linear):
    """A linear layer that autocast leaves alone."""

    def forward(self, input: Tensor) -> Tensor:
        if not torch.is_autocast_enabled(input.device.type):
            return functional.linear(input, self.weight, self.bias)
        with torch.autocast(input.device.type, enabled=False):
            return functional.linear(input.float(), self.weight, self.bias)


class Scale(NamedTuple):
    """A head's value v stands for shift + scale * v."""

    shift: Tensor
    scale: Tensor


class PolicyHead(nn.Module):
    """The distribution over an action space.

    A continuous action has a learnt log standard deviation per dimension that does not depend on the state.
    """

    def __init__(self, features: int, space: ActionSpace, initial_log_std: float = 0.0) -> None:
        super().__init__()
        self._space = space
        outputs = space.size if isinstance(space, Continuous) else space.mask_size
        self.linear = orthogonal(Float32Linear(features, outputs), POLICY_GAIN)
        self.log_stds = (
            nn.Parameter(torch.full((space.size,), initial_log_std)) if isinstance(space, Continuous) else None
        )

    def forward(self, features: Tensor, action_masks: Tensor | None) -> Distribution:
        x = self.linear(features)
        match self._space:
            case Discrete():
                return Categorical(x, action_masks)
            case MultiDiscrete(choices=choices):
                return MultiCategorical(x, choices, action_masks)
            case Continuous():
                assert self.log_stds is not None
                return DiagonalGaussian(x, self.log_stds)


class ValueHead(nn.Module):
    """The value of a state, one number per entry of the leading axes."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = orthogonal(Float32Linear(features, 1), _VALUE_GAIN)

    def forward(self, features: Tensor) -> Tensor:
        value: Tensor = self.linear(features)
        return value.squeeze(-1)

    @torch.no_grad()
    def rescale(self, before: Scale, after: Scale) -> None:
        """Keeps `shift + scale * value` what it was when shift and scale change.

        w <- w scale / scale',  b <- (scale b + shift - shift') / scale' (van Hasselt et al. 2016, "Learning values
        across many orders of magnitude", proposition 1; arXiv:1602.07714).
        """
        self.linear.weight.mul_(before.scale / after.scale)
        self.linear.bias.mul_(before.scale).add_(before.shift - after.shift).div_(after.scale)


class ActionValueLayers(nn.Module):
    """The values of K actions, or distributions of their returns.

    Dueling: Q = V + A - mean of A over the allowed actions (Wang et al. 2016, eq. 9; arXiv:1511.06581), for every
    quantile or logit of an atom alike.

    Args:
        features: F of its input.
        choices: K.
        shape: what the rule asks for.
    """

    support: Tensor | None
    """The returns of atoms, float32 `[atoms]`."""

    def __init__(self, features: int, choices: int, shape: ActionValueHead) -> None:
        super().__init__()
        distribution = shape.distribution
        self._parts = 1 if distribution is None else distribution.parts
        self._choices = choices
        self._is_plain = distribution is None
        self.advantages = _stream(features, shape.units, choices * self._parts)
        self.values = _stream(features, shape.units, self._parts) if shape.dueling else None
        support = None
        if isinstance(distribution, Atoms):
            support = torch.linspace(distribution.minimum, distribution.maximum, distribution.atoms)
        self.register_buffer("support", support, persistent=False)

    def forward(self, features: Tensor, action_masks: Tensor | None) -> ActionValues:
        x = self.advantages(features).unflatten(-1, (self._choices, self._parts))
        if self.values is not None:
            if action_masks is None:
                mean = x.mean(-2, keepdim=True)
            else:
                weights = allowed(action_masks).unsqueeze(-1).to(x.dtype)
                mean = (x * weights).sum(-2, keepdim=True) / weights.sum(-2, keepdim=True)
            x = x - mean + self.values(features).unsqueeze(-2)
        if self._is_plain:
            return ActionValues(x.squeeze(-1), None)
        if self.support is None:
            return ActionValues(x.mean(-1), x)
        log_probs = torch.log_softmax(x, dim=-1)
        return ActionValues((log_probs.exp() * self.support).sum(-1), log_probs)


def _stream(features: int, units: int | None, outputs: int) -> nn.Module:
    if units is None:
        return Float32Linear(features, outputs)
    return nn.Sequential(nn.Linear(features, units), nn.ReLU(), Float32Linear(units, outputs))
