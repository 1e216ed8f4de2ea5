"""One picture of an episode: frames at even distances, each with its step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from srlhpc.environment import Array
from srlhpc.pictures.film import Film

if TYPE_CHECKING:
    from PIL.Image import Image

import numpy as np

COLUMNS, ROWS = 4, 4
_CANDIDATES = 8 * COLUMNS * ROWS
"""Frames that are kept in memory until the end of the episode is known."""
_NARROWEST, _WIDEST = 160, 400
"""Narrowest and widest frame on the sheet, in pixels."""
_LABEL = 24
"""Height of the line above a frame, in pixels."""
_GAP = 6
_PAPER, _INK = (255, 255, 255), (40, 40, 40)


class ContactSheet(Film):
    """Shows the first episode on a `.png` file, row by row.

    Args:
        path: the file.
    """

    most_episodes = 1

    def __init__(self, path: Path) -> None:
        self._path = path
        self._frames = FrameSelection(_CANDIDATES)

    def add(self, frame: Array) -> None:
        # An environment may draw on the same array again.
        self._frames.add(frame.copy())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is None:
            sheet(self._frames.choose(COLUMNS * ROWS)).save(self._path)


def sheet(frames: Mapping[int, Array]) -> Image:
    """Frames, uint8 `[height, width, 3]`, by their steps, `COLUMNS` in a row, with the step above each."""
    from PIL import Image, ImageDraw, ImageFont

    cells = {step: _scaled(Image.fromarray(frame)) for step, frame in frames.items()}
    width, height = next(iter(cells.values())).size
    width, height = width + _GAP, height + _LABEL + _GAP
    columns, rows = min(COLUMNS, len(cells)), -(-len(cells) // COLUMNS)
    picture = Image.new("RGB", (columns * width + _GAP, rows * height + _GAP), _PAPER)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(_LABEL * 2 // 3)
    for place, (step, cell) in enumerate(cells.items()):
        left, top = _GAP + place % COLUMNS * width, _GAP + place // COLUMNS * height
        draw.text((left, top + _LABEL // 2), f"step {step}", _INK, font, anchor="lm")
        picture.paste(cell, (left, top + _LABEL))
    return picture


def _scaled(image: Image) -> Image:
    """Neither too small for its label nor too large; pixels of small pictures stay sharp."""
    from PIL.Image import Resampling

    if image.width < _NARROWEST:
        times = -(-_NARROWEST // image.width)
        return image.resize((times * image.width, times * image.height), Resampling.NEAREST)
    if image.width > _WIDEST:
        return image.resize((_WIDEST, round(image.height * _WIDEST / image.width)), Resampling.LANCZOS)
    return image


class FrameSelection:
    """Keeps at most `most` of the frames that it is given, and the last.

    When it is full it drops every second one, and takes only every second from then on: so their distances are even.
    """

    def __init__(self, most: int) -> None:
        assert most >= 2
        self._most, self._stride, self._seen = most, 1, 0
        self._kept: dict[int, Array] = {}
        self._last: dict[int, Array] = {}

    def add(self, frame: Array) -> None:
        number = self._seen
        self._seen += 1
        self._last = {number: frame}
        if number % self._stride == 0 and len(self._kept) == self._most:
            self._stride *= 2
            self._kept = {kept: old for kept, old in self._kept.items() if kept % self._stride == 0}
        if number % self._stride == 0:
            self._kept[number] = frame

    def choose(self, count: int) -> dict[int, Array]:
        """At most `count` frames by their numbers, as evenly as they were kept, the first and the last among them."""
        frames = self._kept | self._last
        numbers = np.array(list(frames))
        wanted = np.linspace(0, self._seen - 1, min(count, len(frames)))
        nearest = numbers[np.abs(numbers - wanted[:, None]).argmin(axis=1)]
        return {number: frames[number] for number in nearest.tolist()}
