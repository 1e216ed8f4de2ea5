"""A set of numbers from which each is drawn with the same chance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Items = NDArray[np.int64]
_FEW = 16
"""Where the set has fewer items than so many for each that is drawn, looking for them costs more than listing them."""


class ItemSet:
    """Some of the numbers from 0 to `capacity`; adding, removing and drawing are vectorised.

    One byte for each number stays in a processor's cache where a list of the items would not. So numbers are drawn that
    may be in the set or not, and those that are not are left out.
    """

    def __init__(self, capacity: int) -> None:
        self._members = np.zeros(capacity, bool)
        self._size = 0
        self._end = 0
        """All items so far were less; what is drawn depends on it, so it does not shrink when items go."""

    def __len__(self) -> int:
        return self._size

    def add(self, items: _Items) -> None:
        """Adds items that are not in it, each once."""
        self._members[items] = True
        self._size += items.size
        self._end = max(self._end, int(items.max(initial=-1)) + 1)

    def remove(self, items: _Items) -> None:
        """Removes those of the items, each named once, that are in it."""
        self._size -= int(np.count_nonzero(self._members[items]))
        self._members[items] = False

    def draw(self, count: int, generator: np.random.Generator) -> _Items:
        """So many items, drawn with replacement; the set must not be empty."""
        if not count or self._size == self._end:
            return generator.integers(self._end, size=count)
        if self._size < _FEW * count:
            return self.items()[generator.integers(self._size, size=count)]
        # A few more than are expected to be needed, so that a second round is rare.
        tries = 8 + int(1.1 * count * self._end / self._size)
        items = self._some(tries, generator)
        while items.size < count:
            items = np.concatenate([items, self._some(tries, generator)])
        return items[:count]

    def _some(self, tries: int, generator: np.random.Generator) -> _Items:
        numbers = generator.integers(self._end, size=tries)
        items: _Items = numbers[self._members[numbers]]
        return items

    def items(self) -> _Items:
        """All items, in ascending order."""
        return np.flatnonzero(self._members[: self._end])

    def save_state(self) -> dict[str, Any]:
        """All that further draws depend on, but the generator."""
        return {"items": self.items(), "end": self._end}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `save_state` gave; states that earlier versions saved have no end."""
        self._members[:] = False
        self._size = self._end = 0
        self.add(state["items"])
        self._end = int(state.get("end", self._end))
