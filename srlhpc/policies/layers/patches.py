"""Images of bytes as the patches over which a first convolution strides, for processors ("space to depth").

Where its stride s divides its kernel K, a convolution sees an image as a grid of patches of s x s pixels. On the
patches as channels it is one of kernel K / s and stride 1 with the same products, and so are its gradients. The s bytes
of a patch's row lie side by side and are moved as one number: a quarter of the moves that channels-last memory takes at
a stride of 4. And s x C x s channels fill a processor's matrix units, where C do not.

Shape letters: N rows, C, Y, X channels, height and width, P = s x C x s, F filters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from srlhpc.environment import ArraySpec
from srlhpc.policies.layers.images import Convolution

_WORDS = {2: np.int16, 4: np.int32, 8: np.int64}
"""Numbers of so many bytes."""


class Patches:
    """Cuts images of one shape, in the memory of the processor.

    Args:
        channels, height, width: of an image; the stride divides the width.
        stride: 2, 4 or 8.
    """

    def __init__(self, channels: int, height: int, width: int, stride: int) -> None:
        self._rows, self._columns, self._channels = height // stride, width // stride, stride * channels * stride
        self._word = _WORDS[stride]
        places = np.arange(channels * height * self._columns).reshape(channels, height, self._columns)
        # Rows below the last whole patch are seen by no filter.
        by_patch = places[:, : self._rows * stride].reshape(channels, self._rows, stride, self._columns)
        self._words = by_patch.transpose(1, 3, 2, 0).reshape(-1)
        self._image = channels * height * self._columns

    @classmethod
    def over(cls, images: Sequence[ArraySpec], layer: Convolution) -> Patches | None:
        """Patches of images that are concatenated, all of one height and width; None where a layer sees no patches."""
        if not images or any(spec.dtype != "uint8" for spec in images):
            return None
        _, height, width = images[0].shape
        if layer.stride not in _WORDS or layer.kernel % layer.stride or width % layer.stride:
            return None
        return cls(sum(spec.shape[0] for spec in images), height, width, layer.stride)

    def __call__(self, images: Tensor) -> Tensor:
        """Bytes `[N, C, Y, X]` as `[N, P, Y // s, X // s]` in channels-last memory."""
        words = images.contiguous().numpy().view(self._word).reshape(len(images), self._image)
        # `clip` is faster: every index is in range.
        patches = torch.from_numpy(words.take(self._words, axis=1, mode="clip").view(np.uint8))
        return patches.view(len(images), self._rows, self._columns, self._channels).permute(0, 3, 1, 2)


def patch_weight(weight: Tensor, stride: int) -> Tensor:
    """Filters `[F, C, K, K]` as those of patches, `[F, P, K // s, K // s]` in channels-last memory."""
    filters, channels, kernel, _ = weight.shape
    grid = kernel // stride
    parts = weight.view(filters, channels, grid, stride, grid, stride).permute(0, 2, 4, 3, 1, 5)
    return parts.reshape(filters, grid, grid, -1).permute(0, 3, 1, 2)
