"""Films of episodes as `.gif` files, at the right speed."""

from __future__ import annotations

import math
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from srlhpc.environment import Array
from srlhpc.pictures.film import Film

if TYPE_CHECKING:
    from PIL.Image import Image


_MOST_PER_SECOND = 50
"""Most frames a second: viewers show faster films ten times too slow."""
_TICK = 10
"""Milliseconds of one unit of time of the format."""


class GifFile(Film):
    """Writes frames to a `.gif` file; of more than 50 frames a second only every second, third, ...

    Args:
        path: the file.
        frames_per_second: speed of the film.
    """

    def __init__(self, path: Path, frames_per_second: float) -> None:
        self._path = path
        self._stride = math.ceil(frames_per_second / _MOST_PER_SECOND)
        self._milliseconds = 1000 * self._stride / frames_per_second
        self._seen = 0
        self._images: list[Image] = []

    def add(self, frame: Array) -> None:
        from PIL import Image

        if self._seen % self._stride == 0:
            # With a palette of its own a picture needs a third of the memory.
            self._images.append(Image.fromarray(frame).quantize())
        self._seen += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is None and self._images:
            first, *others = self._images
            first.save(self._path, save_all=True, append_images=others, duration=self.durations(), loop=0)

    def durations(self) -> list[int]:
        """Milliseconds of each frame: whole ticks that together are right."""
        ends = [_TICK * round((frame + 1) * self._milliseconds / _TICK) for frame in range(len(self._images))]
        return [end - start for start, end in zip([0, *ends], ends, strict=False)]
