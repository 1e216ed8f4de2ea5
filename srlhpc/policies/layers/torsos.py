"""Torsos: from encoded observations to features.

Shape letters: N rows, V vector, F features, C, Y, X channels, height and width.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from srlhpc.policies.layers.activations import tanh
from srlhpc.policies.layers.images import Convolution, output_size
from srlhpc.policies.layers.initialization import orthogonal
from srlhpc.policies.layers.observations import Encoded
from srlhpc.policies.layers.rectified import ImageConvolution, RectifiedConvolution

Activation = Literal["tanh", "relu"]

# In place: a layer keeps its input for the gradient, and not what it gives.
_ACTIVATIONS = {"tanh": tanh, "relu": torch.relu_}


class Torso(nn.Module):
    """Maps `Encoded` to features `[N, F]`."""

    features: int
    stackable: ClassVar[bool] = False
    """Whether many copies compute faster in one product (`Policy.stackable`)."""


class MlpTorso(Torso):
    """Fully connected layers on the vector."""

    stackable = True

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
    the order height, width, channel.

    Args:
        image_scales: what each input channel is multiplied by.
        height, width: of the images.
        vector_size: V; 0 without a vector.
        layers: the convolutions.
        features: F.
    """

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
        self.convolutions = nn.ModuleList(
            orthogonal(layer, math.sqrt(2)) for layer in _convolutions(image_scales, layers)
        )
        flat = layers[-1].channels * output_size(height, layers) * output_size(width, layers)
        self.linear = orthogonal(nn.Linear(flat + vector_size, features), math.sqrt(2))
        self.features = features

    def forward(self, encoded: Encoded) -> Tensor:
        assert encoded.images is not None
        x_NCYX = encoded.images
        for convolution in self.convolutions:
            x_NCYX = convolution(x_NCYX)
        x_NF = x_NCYX.permute(0, 2, 3, 1).flatten(1)
        if encoded.vector is not None:
            x_NF = torch.cat([x_NF, encoded.vector.to(x_NF.dtype)], dim=1)
        return torch.relu_(self.linear(x_NF))


def _convolutions(image_scales: Sequence[float], layers: Sequence[Convolution]) -> Iterator[RectifiedConvolution]:
    yield ImageConvolution(image_scales, layers[0])
    for before, layer in pairwise(layers):
        yield RectifiedConvolution(before.channels, layer)
