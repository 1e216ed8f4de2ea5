"""How layers start."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from srlhpc.policies.layers.initialization import uniform


def fills(tensor: Tensor, bound: float) -> bool:
    """Whether numbers look drawn from U(-bound, bound): all inside, and some near each end."""
    return -bound <= tensor.min().item() < -0.9 * bound and 0.9 * bound < tensor.max().item() <= bound


def test_weights_and_biases_are_drawn_within_the_root_of_the_fan_in() -> None:
    torch.manual_seed(0)
    layers = nn.ModuleList([nn.Linear(16, 400), nn.Sequential(nn.Conv2d(3, 400, kernel_size=(2, 5)))])
    for parameter in layers.parameters():
        nn.init.constant_(parameter, 7.0)
    assert uniform(layers) is layers
    weight, bias, kernel, offset = layers.parameters()
    assert fills(weight, 1 / math.sqrt(16))
    assert fills(bias, 1 / math.sqrt(16))
    assert fills(kernel, 1 / math.sqrt(30))
    assert fills(offset, 1 / math.sqrt(30))


def test_other_layers_stay_what_they_are() -> None:
    norm = nn.LayerNorm(4)
    nn.init.constant_(norm.bias, 3.0)
    uniform(nn.Sequential(norm, nn.Linear(4, 4)))
    assert norm.bias.tolist() == [3.0] * 4
