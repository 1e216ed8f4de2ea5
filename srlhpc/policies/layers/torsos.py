"""Torsos: from encoded observations to features.

Shape letters: N rows, V vector, F features, C, Y, X channels, height and width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from srlhpc.policies.layers.activations import tanh
from srlhpc.policies.layers.images import Convolution, output_size
from srlhpc.policies.layers.initialization import orthogonal
from srlhpc.policies.layers.observations import Encoded

Activation = Literal["tanh", "relu"]

# In place: a layer keeps its input for the gradient, and not what it gives.
_ACTIVATIONS = {"tanh": tanh, "relu": torch.relu_}


class Torso(nn.Module):
    """Maps `Encoded` to features `[N, F]`."""

    features: int


class MlpTorso(Torso):
    """Fully connected layers on the vector."""

    def __init__(self, vector_size: int, hidden: Sequence[int], activation: Activation) -> None:
        super().__init__()
        sizes = [vector_size, *hidden]
        self.layers = nn.ModuleList(
            orthogonal(nn.Linear(before, after), math.sqrt(2)) for before, after in pairwise(sizes)
        )
        self._activation = _ACTIVATIONS[activation]
        self.features = sizes[-1]

    def forward(self, encoded: Encoded) -> Tensor:
        assert encoded.vector is not None
        x = encoded.vector
        for layer in self.layers:
            x = self._activation(layer(x))
        return x


class CnnTorso(Torso):
    """Convolutions on the images, then one fully connected layer that also takes the vector; ReLU throughout.

    Images are in channels-last memory (a third less training time on a CPU), so the last convolution is flattened in
    the order height, width, channel. Bytes are divided by 255 in the weights of the first layer, not in the images.

    Args:
        image_scales: what each input channel is multiplied by.
        height, width: of the images.
        vector_size: V; 0 without a vector.
        layers: the convolutions.
        features: F.
    """

    image_scales: Tensor

    def __init__(
        self,
        image_scales: Sequence[float],
        height: int,
        width: int,
        vector_size: int,
        layers: Sequence[Convolution],
        features: int,
    ) -> None:
        super().__init__()
        channels = [len(image_scales), *(layer.channels for layer in layers)]
        self.convolutions = nn.ModuleList(
            orthogonal(nn.Conv2d(before, layer.channels, layer.kernel, layer.stride), math.sqrt(2))
            for before, layer in zip(channels, layers, strict=False)
        )
        self.register_buffer("image_scales", torch.tensor(image_scales).reshape(1, -1, 1, 1), persistent=False)
        flat = channels[-1] * output_size(height, layers) * output_size(width, layers)
        self.linear = orthogonal(nn.Linear(flat + vector_size, features), math.sqrt(2))
        self.features = features

    def forward(self, encoded: Encoded) -> Tensor:
        assert encoded.images is not None
        first, *others = self.convolutions
        assert isinstance(first, nn.Conv2d)
        x_NCYX = functional.conv2d(encoded.images, first.weight * self.image_scales, first.bias, first.stride)
        x_NCYX = torch.relu_(x_NCYX)
        for convolution in others:
            x_NCYX = torch.relu_(convolution(x_NCYX))
        x_NF = x_NCYX.permute(0, 2, 3, 1).flatten(1)
        if encoded.vector is not None:
            x_NF = torch.cat([x_NF, encoded.vector.to(x_NF.dtype)], dim=1)
        return torch.relu_(self.linear(x_NF))
