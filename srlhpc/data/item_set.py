"""A set of numbers from which each is drawn with the same chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Items = NDArray[np.int64]
_ABSENT = -1


class ItemSet:
    """Some of the numbers from 0 to `capacity`, side by side; adding, removing and drawing are vectorised.

    The order is part of the state: the same draws give the same items only if it is the same.
    """

    def __init__(self, capacity: int) -> None:
        self._dense: _Items = np.zeros(capacity, np.int64)
        self._place: _Items = np.full(capacity, _ABSENT, np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, items: _Items) -> None:
        """Adds items that are not in it, each once."""
        end = self._size + items.size
        self._dense[self._size : end] = items
        self._place[items] = np.arange(self._size, end)
        self._size = end

    def remove(self, items: _Items) -> None:
        """Removes those of the items, each named once, that are in it."""
        places = self._place[items]
        places = places[places != _ABSENT]
        self._place[self._dense[places]] = _ABSENT
        end = self._size - places.size
        moved = self._dense[end : self._size]
        moved = moved[self._place[moved] != _ABSENT]
        holes = places[places < end]
        self._dense[holes] = moved
        self._place[moved] = holes
        self._size = end

    def draw(self, count: int, generator: np.random.Generator) -> _Items:
        """So many items, drawn with replacement."""
        return self._dense[generator.integers(self._size, size=count)]

    def items(self) -> _Items:
        """All items, in their order."""
        return self._dense[: self._size].copy()

    def set(self, items: _Items) -> None:
        """Replaces all items by those that `items` gave."""
        self._place[:] = _ABSENT
        self._size = 0
        self.add(items)
