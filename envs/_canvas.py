"""Painting simple shapes on an array of pixels, in the coordinates of what is shown."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from srlhpc.environment import Array, BoolArray

Color = tuple[int, int, int]
_SAMPLES = 2
"""Pixels are the mean of so many samples a side: edges look smooth."""


class Canvas:
    """A picture of a part of a plane, y upwards.

    Args:
        view: left, lower, right, upper edge of what is shown.
        pixels: width of the picture; the height follows from the view.
        background: its colour.
    """

    def __init__(self, view: tuple[float, float, float, float], pixels: int, background: Color) -> None:
        left, lower, right, upper = view
        self._scale = pixels * _SAMPLES / (right - left)
        width, height = pixels * _SAMPLES, round((upper - lower) * self._scale / _SAMPLES) * _SAMPLES
        self._x = left + (np.arange(width) + 0.5) / self._scale
        self._y = upper - (np.arange(height) + 0.5) / self._scale
        self._samples: NDArray[np.float32] = np.full((height, width, 3), background, np.float32)

    def picture(self) -> Array:
        """uint8 `[height, width, 3]`."""
        height, width, _ = self._samples.shape
        blocks = self._samples.reshape(height // _SAMPLES, _SAMPLES, width // _SAMPLES, _SAMPLES, 3)
        picture: NDArray[np.uint8] = np.rint(blocks.mean(axis=(1, 3))).astype(np.uint8)
        return picture

    def disc(self, x: float, y: float, radius: float, color: Color, opacity: float = 1.0) -> None:
        rows, columns = self._window(x, y, radius)
        dx, dy = self._x[columns] - x, self._y[rows, None] - y
        self._paint(rows, columns, dx * dx + dy * dy <= radius * radius, color, opacity)

    def box(
        self, x: float, y: float, half: tuple[float, float], angle: float, color: Color, opacity: float = 1.0
    ) -> None:
        """A rectangle turned about its centre."""
        rows, columns = self._window(x, y, math.hypot(*half))
        along, across = self._turned(rows, columns, x, y, angle)
        self._paint(rows, columns, (np.abs(along) <= half[0]) & (np.abs(across) <= half[1]), color, opacity)

    def slope(self, x: float, y: float, half: float, angle: float, low: Color, high: Color) -> None:
        """A square whose colour goes from its +y to its -y edge."""
        rows, columns = self._window(x, y, half * math.sqrt(2))
        along, across = self._turned(rows, columns, x, y, angle)
        part = np.clip((half - across) / (2 * half), 0.0, 1.0)[..., None]
        colors = np.array(low) * (1.0 - part) + np.array(high) * part
        inside = (np.abs(along) <= half) & (np.abs(across) <= half)
        self._samples[rows, columns][inside] = colors[inside]

    def line(self, start: tuple[float, float], end: tuple[float, float], width: float, color: Color) -> None:
        length = math.dist(start, end)
        angle = math.atan2(end[1] - start[1], end[0] - start[0])
        self.box((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, (length / 2, width / 2), angle, color)

    def fan(
        self, x: float, y: float, facing: float, spread: float, reach: NDArray[np.float64], color: Color, opacity: float
    ) -> None:
        """What rays cover that go out from a point, evenly from `facing - spread` to `facing + spread`.

        Args:
            x: of the point.
            y: of the point.
            facing: angle of the middle ray.
            spread: half the angle of the fan.
            reach: length of every ray.
            color: of the fan.
            opacity: of the fan.
        """
        rows, columns = self._window(x, y, float(reach.max()))
        dx, dy = self._x[columns] - x, self._y[rows, None] - y
        off = (np.arctan2(dy, dx) - facing + math.pi) % (2 * math.pi) - math.pi
        ray = np.clip(np.rint((off + spread) / (2 * spread) * (len(reach) - 1)), 0, len(reach) - 1).astype(np.int64)
        covered = (np.abs(off) <= spread) & (np.hypot(dx, dy) <= reach[ray])
        self._paint(rows, columns, covered, color, opacity)

    def _window(self, x: float, y: float, radius: float) -> tuple[slice, slice]:
        """Rows and columns around a point; empty where that is off the picture."""
        columns = np.searchsorted(self._x, (x - radius, x + radius))
        rows = np.searchsorted(-self._y, (-y - radius, -y + radius))
        return slice(int(rows[0]), int(rows[1])), slice(int(columns[0]), int(columns[1]))

    def _turned(
        self, rows: slice, columns: slice, x: float, y: float, angle: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Coordinates of samples in a frame that is turned about a point."""
        dx, dy = self._x[columns] - x, self._y[rows, None] - y
        cos, sin = math.cos(angle), math.sin(angle)
        return dx * cos + dy * sin, dy * cos - dx * sin

    def _paint(self, rows: slice, columns: slice, covered: BoolArray, color: Color, opacity: float) -> None:
        window = self._samples[rows, columns]
        window[covered] += opacity * (np.array(color, np.float32) - window[covered])
