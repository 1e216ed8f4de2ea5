"""How layers are initialised: one way for actors and critics that learn from fresh data, one for values from replay."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

_Layer = TypeVar("_Layer", nn.Linear, nn.Conv2d)
_Module = TypeVar("_Module", bound=nn.Module)


def orthogonal(layer: _Layer, gain: float) -> _Layer:
    """Orthogonal weights and zero biases (Huang et al. 2022, "The 37 implementation details of PPO", detail 2)."""
    nn.init.orthogonal_(layer.weight, gain)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


def uniform(module: _Module) -> _Module:
    """Draws weights and biases of all its linear layers and convolutions from U(-1/sqrt(fan-in), 1/sqrt(fan-in)).

    This is torch's own initialisation (LeCun et al. 1998, "Efficient BackProp", section 4.6, in another scale), with
    which DQN and SAC were published. Values that are learnt from themselves need the biases: with zero biases and
    observations near zero, such as CartPole's, a network has to form a constant from large weights, overestimates
    beside it, and its targets diverge (docs/decisions/0035).
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            layer.reset_parameters()
    return module
