"""An even selection of frames out of a stream of unknown length."""

from __future__ import annotations

import numpy as np

from srlhpc.environment import Array


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
