"""Turns an agent's named raw observations into what a torso takes: one float vector and one stack of images.

Letters: `...` leading axes (`[N]` or `[T, B]`), N rows of all leading axes together, V size of the vector,
C, Y, X channels, height and width of images.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from srlhpc.environment import ArraySpec
from srlhpc.policies.layers.images import Convolution, is_image
from srlhpc.policies.layers.patches import Patches
from srlhpc.rl.normalization import RunningMoments
from srlhpc.specs.policy import NormalizeSpec


class Encoded(NamedTuple):
    """What a torso takes; an absent part is None."""

    vector: Tensor | None
    """float32 `[N, V]`."""
    images: Tensor | None
    """`[N, C, Y, X]`, or as patches (policies/layers/patches.py), in channels-last memory, float32 (bfloat16 under
    autocast); bytes are not yet divided by 255."""


def running_moments(size: int, normalize: NormalizeSpec) -> RunningMoments:
    """Moments of rows of `size` numbers as a spec wants them."""
    return RunningMoments(size, decay=normalize.decay, smallest_std=normalize.smallest_std)


class Encoder(nn.Module, ABC):
    """Turns an agent's named raw observations into what the torsos of one kind take.

    Args:
        specs: key to array of one agent, of the observations that are used, in their order.
        normalize: whether and how float observations are normalised.
    """

    def __init__(self, specs: Mapping[str, ArraySpec], normalize: NormalizeSpec) -> None:
        super().__init__()
        self._specs = dict(specs)
        self._float_keys = [key for key, spec in self._specs.items() if spec.dtype.startswith("float")]
        self.moments = self._new_moments(normalize) if normalize.observations and self._float_keys else None
        """What normalises observations, or None."""
        self._clip = normalize.observation_clip

    def _new_moments(self, normalize: NormalizeSpec) -> RunningMoments:
        return running_moments(sum(math.prod(self._specs[key].shape) for key in self._float_keys), normalize)

    @property
    def normalized(self) -> frozenset[str]:
        """Keys of the observations that `sums` reads."""
        return frozenset() if self.moments is None else frozenset(self._float_keys)

    @abstractmethod
    def forward(self, observations: Mapping[str, Tensor]) -> Any:
        """Encodes observations with any leading axes, which become one."""

    def sums(self, observations: Mapping[str, Tensor], valid: Tensor) -> Tensor | None:
        """Sums for the running moments over valid rows; None if nothing is normalised."""
        if self.moments is None:
            return None
        return self.moments.sums(self._floats(observations), valid.flatten())

    def _normalized(self, floats_NV: Tensor) -> Tensor:
        assert self.moments is not None
        return self.moments.normalize(floats_NV).clamp(-self._clip, self._clip)

    def _rows(self, key: str, array: Tensor) -> Tensor:
        shape = self._specs[key].shape
        return array if array.ndim == 1 + len(shape) else array.flatten(0, array.ndim - len(shape) - 1)

    def _floats(self, observations: Mapping[str, Tensor]) -> Tensor:
        rows = [as_vector(self._rows(key, observations[key])) for key in self._float_keys]
        return rows[0] if len(rows) == 1 else torch.cat(rows, dim=1)

    def _split(self, floats_NV: Tensor) -> dict[str, Tensor]:
        shapes = {key: self._specs[key].shape for key in self._float_keys}
        parts = torch.split(floats_NV, [math.prod(shape) for shape in shapes.values()], dim=1)
        return {key: part.reshape(-1, *shape) for (key, shape), part in zip(shapes.items(), parts, strict=True)}


class ObservationEncoder(Encoder):
    """Concatenates observations in the order of their names.

    Float observations are scaled by running moments if `normalize`; bytes and integers are taken as they are, bytes of
    the vector divided by 255.

    Args:
        observations: key to array of one agent.
        images: whether arrays of three axes are images; otherwise everything is flattened into the vector.
        normalize: whether and how float observations are normalised.
        first: convolution that takes the images; None: they are not given as patches.
    """

    def __init__(
        self,
        observations: Mapping[str, ArraySpec],
        *,
        images: bool,
        normalize: NormalizeSpec,
        first: Convolution | None = None,
    ) -> None:
        super().__init__({key: observations[key] for key in sorted(observations)}, normalize)
        self._image_keys = [key for key, spec in self._specs.items() if images and is_image(spec)]
        self._vector_keys = [key for key in self._specs if key not in self._image_keys]
        self.vector_size = sum(math.prod(self._specs[key].shape) for key in self._vector_keys)
        self._only_floats = not self._image_keys and self._vector_keys == self._float_keys
        shown = [self._specs[key] for key in self._image_keys]
        self._patches = None if first is None else Patches.over(shown, first)

    @property
    def image_scales(self) -> list[float]:
        """What each image channel is still to be multiplied by, C numbers."""
        scales = []
        for key in self._image_keys:
            spec = self._specs[key]
            scales += [1 / 255 if spec.dtype == "uint8" else 1.0] * spec.shape[0]
        return scales

    def forward(self, observations: Mapping[str, Tensor]) -> Encoded:
        if self._only_floats:
            vector = self._floats(observations)
            return Encoded(vector if self.moments is None else self._normalized(vector), None)
        arrays = {key: self._rows(key, observations[key]) for key in self._specs}
        if self.moments is not None:
            arrays |= self._split(self._normalized(self._floats(observations)))
        vectors = [as_vector(arrays[key]) for key in self._vector_keys]
        return Encoded(_concatenate(vectors), self._images([arrays[key] for key in self._image_keys]))

    def _images(self, arrays: list[Tensor]) -> Tensor | None:
        # A rule may have made other numbers of them.
        bytes_here = all(rows.dtype == torch.uint8 and rows.device.type == "cpu" for rows in arrays)
        if self._patches is None or not bytes_here:
            return _concatenate([_as_image(rows) for rows in arrays])
        images = _concatenate(arrays)
        assert images is not None
        return self._patches(images).to(_dtype(images))


def as_vector(rows: Tensor) -> Tensor:
    """Everything behind the first axis flattened, float32 `[N, V]`; bytes divided by 255."""
    vector = rows if rows.ndim == 2 else rows.reshape(len(rows), -1)
    if vector.dtype == torch.uint8:
        return vector.float().mul_(1 / 255)
    return vector.float()


def _as_image(rows: Tensor) -> Tensor:
    # Two passes, each vectorised; casting and moving in one takes twice as long.
    return rows.to(_dtype(rows)).contiguous(memory_format=torch.channels_last)


def _dtype(images: Tensor) -> torch.dtype:
    """What a convolution computes with where these are."""
    device = images.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else torch.float32


def _concatenate(parts: list[Tensor]) -> Tensor | None:
    if len(parts) <= 1:
        return parts[0] if parts else None
    return torch.cat(parts, dim=1)
