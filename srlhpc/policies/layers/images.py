"""What convolutional networks ask of an agent's observations; plain arithmetic, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from srlhpc.environment import ArraySpec, Kind
from srlhpc.errors import UserError


class Convolution(NamedTuple):
    """One layer without padding, followed by a ReLU."""

    channels: int
    kernel: int
    stride: int


def is_image(spec: ArraySpec) -> bool:
    """Arrays of three axes are images `[channels, height, width]`."""
    return len(spec.shape) == 3


def output_size(size: int, layers: Sequence[Convolution]) -> int:
    """Height (or width) after the layers; below 1 if the image is too small."""
    for layer in layers:
        if size < layer.kernel:
            return 0
        size = (size - layer.kernel) // layer.stride + 1
    return size


def smallest_input(layers: Sequence[Convolution]) -> int:
    """The least height (or width) that leaves one output."""
    size = 1
    for layer in reversed(layers):
        size = (size - 1) * layer.stride + layer.kernel
    return size


def check_images(network: str, kind: Kind, layers: Sequence[Convolution]) -> None:
    """Raises UserError unless the kind has images, all of one height and width, large enough for the layers."""
    images = {key: spec.shape for key, spec in kind.observations.items() if is_image(spec)}
    if not images:
        seen = ", ".join(f"{key} {list(spec.shape)}" for key, spec in kind.observations.items())
        raise UserError(
            f"network {network} needs an image [channels, height, width], but agents of kind '{kind.name}' observe "
            f"{seen}; use network mlp"
        )
    if len({shape[1:] for shape in images.values()}) > 1:
        listed = ", ".join(f"{key} {list(shape)}" for key, shape in images.items())
        raise UserError(f"network {network} needs images of one height and width, but '{kind.name}' has {listed}")
    least = smallest_input(layers)
    for key, (channels, height, width) in images.items():
        if min(height, width) < least:
            raise UserError(
                f"observation '{key}' of kind '{kind.name}' has shape [{channels}, {height}, {width}] (channels, "
                f"height, width); network {network} needs height and width of at least {least}; use larger images, "
                f"channels first, or network mlp"
            )
