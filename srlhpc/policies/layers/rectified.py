"""Convolutions with the ReLU behind them, trained faster on processors where they stride.

Where the stride s of a convolution divides its kernel K and the images' width, s pixels of a row, which lie side by
side in channels-last memory, are seen as one with s times the channels: the same products by a kernel of K x K / s,
which has cheaper gradients. Acting gains nothing.

Shape letters: N rows, C, Y, X channels, height and width, F filters, K kernel, s stride.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from srlhpc.policies.layers.images import Convolution
from srlhpc.policies.layers.patches import patch_weight


def rectified(images: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    """ReLU of a convolution without padding, `[N, F, Y', X']`.

    Args:
        images: `[N, C, Y, X]`, in channels-last memory where they are to be folded.
        weight: `[F, C, K, K]`.
        bias: `[F]`.
        stride: s, in both directions.
    """
    strides = (stride, stride)
    if torch.is_grad_enabled() and _folds(images, weight, stride):
        images, weight, strides = _folded(images, stride), _folded_weight(weight, stride), (stride, 1)
    return torch.relu_(functional.conv2d(images, weight, bias, strides))


def _folds(images: Tensor, weight: Tensor, stride: int) -> bool:
    if stride == 1 or images.device.type != "cpu" or weight.shape[3] % stride or images.shape[3] % stride:
        return False
    return images.is_contiguous(memory_format=torch.channels_last)


def _folded(images: Tensor, stride: int) -> Tensor:
    """Each s pixels of a row as one, `[N, s x C, Y, X / s]`, in the same memory."""
    rows, channels, height, width = images.shape
    return images.permute(0, 2, 3, 1).view(rows, height, width // stride, stride * channels).permute(0, 3, 1, 2)


def _folded_weight(weight: Tensor, stride: int) -> Tensor:
    """Filters of folded images, `[F, s x C, K, K / s]`."""
    filters, channels, kernel, _ = weight.shape
    parts = weight.view(filters, channels, kernel, kernel // stride, stride)
    return parts.permute(0, 2, 3, 4, 1).reshape(filters, kernel, kernel // stride, -1).permute(0, 3, 1, 2)


class RectifiedConvolution(nn.Conv2d):
    """A convolution without padding, and the ReLU behind it.

    Args:
        channels: of its input.
        shape: of the layer.
    """

    def __init__(self, channels: int, shape: Convolution) -> None:
        super().__init__(channels, shape.channels, shape.kernel, shape.stride)

    def forward(self, input: Tensor) -> Tensor:
        assert self.bias is not None
        return rectified(input, self.weight, self.bias, self.stride[0])


class ImageConvolution(RectifiedConvolution):
    """The first convolution, which takes images or their patches.

    Bytes are divided by 255 in its weights, not in the images.

    Args:
        scales: what each input channel is multiplied by.
        shape: of the layer.
    """

    scales: Tensor

    def __init__(self, scales: Sequence[float], shape: Convolution) -> None:
        super().__init__(len(scales), shape)
        self.register_buffer("scales", torch.tensor(scales).reshape(1, -1, 1, 1), persistent=False)

    def forward(self, input: Tensor) -> Tensor:
        assert self.bias is not None
        weight, stride = self.weight * self.scales, self.stride[0]
        # Patches have more channels than the images that they are of.
        if input.shape[1] == self.in_channels:
            return rectified(input, weight, self.bias, stride)
        return rectified(input, patch_weight(weight, stride), self.bias, 1)
