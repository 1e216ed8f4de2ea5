"""Convolutions and the ReLU behind them as one operation that is trained on processors.

oneDNN sets what is negative to 0 as it writes, which saves a pass over all outputs. And where the stride s of a
convolution divides its kernel K and the images' width, s pixels of a row, which lie side by side in channels-last
memory, are seen as one with s times the channels: the same products by a kernel of K x K / s, which has cheaper
gradients. Acting gains nothing by either.

Shape letters: N rows, C, Y, X channels, height and width, F filters, K kernel, s stride.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from srlhpc.policies.layers.images import Convolution
from srlhpc.policies.layers.patches import patch_weight

_Stride = tuple[int, int]


def rectified(images: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    """ReLU of a convolution without padding, `[N, F, Y', X']`.

    Args:
        images: `[N, C, Y, X]` in channels-last memory, float32, or what autocast casts to.
        weight: `[F, C, K, K]`.
        bias: `[F]`.
        stride: s, in both directions.
    """
    if not torch.is_grad_enabled() or not _is_fused(images):
        return torch.relu_(functional.conv2d(images, weight, bias, stride))
    # Autocast knows functions of torch alone.
    weight, bias = weight.to(images.dtype), bias.to(images.dtype)
    strides = (stride, stride)
    if _folds(images, weight, stride):
        images, weight, strides = _folded(images, stride), _folded_weight(weight, stride), (stride, 1)
    y: Tensor = _Rectified.apply(images, weight, bias, strides)  # type: ignore[no-untyped-call]
    return y


def _is_fused(images: Tensor) -> bool:
    return images.device.type == "cpu" and len(images) > 0 and images.dtype in _fused_types()


@cache
def _fused_types() -> frozenset[torch.dtype]:
    """What oneDNN convolves on this processor."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return frozenset()
    has_bfloat16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return frozenset({torch.float32, torch.bfloat16} if has_bfloat16 else {torch.float32})


def _folds(images: Tensor, weight: Tensor, stride: int) -> bool:
    if stride == 1 or weight.shape[3] % stride or images.shape[3] % stride:
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


class _Rectified(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, stride: _Stride) -> Tensor:
        y: Tensor = torch.ops.mkldnn._convolution_pointwise.default(
            images, weight, bias, (0, 0), stride, (1, 1), 1, "relu", [], ""
        )
        ctx.save_for_backward(images, weight, y)
        ctx.stride = stride
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        images, weight, y = ctx.saved_tensors
        gradients: tuple[Tensor | None, ...] = torch.ops.aten.convolution_backward(
            torch.ops.aten.threshold_backward(gradient, y, 0),
            images,
            weight,
            [len(weight)],
            ctx.stride,
            (0, 0),
            (1, 1),
            False,
            (0, 0),
            1,
            ctx.needs_input_grad[:3],
        )
        return *gradients, None


class RectifiedConvolution(nn.Conv2d):
    """A convolution without padding, and the ReLU behind it."""

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
        super().__init__(len(scales), shape.channels, shape.kernel, shape.stride)
        self.register_buffer("scales", torch.tensor(scales).reshape(1, -1, 1, 1), persistent=False)

    def forward(self, input: Tensor) -> Tensor:
        assert self.bias is not None
        weight, stride = self.weight * self.scales, self.stride[0]
        # Patches have more channels than the images that they are of.
        if input.shape[1] == self.in_channels:
            return rectified(input, weight, self.bias, stride)
        return rectified(input, patch_weight(weight, stride), self.bias, 1)
