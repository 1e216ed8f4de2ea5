"""Which items of a store are drawn, and with what probability.

Letters: N items of a draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.item_set import ItemSet
from srlhpc.data.layout import Array
from srlhpc.data.sum_tree import SumTree
from srlhpc.specs.replay import Draw, PrioritizedDraw

_Indices = NDArray[np.int64]
_Numbers = NDArray[np.float64]


class Draws:
    """Draws from a set of items: each with the same chance, or by priority if `draw` says so.

    Draws are with replacement. By priority, P(i) = (1 - u) p_i^alpha / sum + u / N' over the N' items of the set
    (Schaul et al. 2016, equation 1, with a uniform share u as in dqn_zoo). The mass is cut into N equal slices and one
    item drawn from each, which lowers the variance and changes no expectation (appendix B.2.1). If all priorities are
    zero, items are drawn uniformly.
    """

    def __init__(self, draw: Draw, capacity: int, generator: np.random.Generator) -> None:
        self._generator = generator
        self._set = ItemSet(capacity)
        self._by_priority = draw if isinstance(draw, PrioritizedDraw) else None
        self._tree = SumTree(capacity) if self._by_priority else None
        self._greatest = 1.0

    def __len__(self) -> int:
        return len(self._set)

    @property
    def uses_priorities(self) -> bool:
        """Whether some items are likelier than others."""
        return self._tree is not None

    def add(self, items: _Indices, priorities: Array | None) -> None:
        """Adds items, each once; without priorities they get the greatest so far, at first 1."""
        self._set.add(items)
        if self._tree is not None:
            self.prioritize(items, np.full(items.size, self._greatest) if priorities is None else priorities)

    def remove(self, items: _Indices) -> None:
        """Removes those of the items that are there."""
        self._set.remove(items)
        if self._tree is not None:
            self._tree.set(items, 0.0)

    def prioritize(self, items: _Indices, priorities: Array) -> None:
        """Replaces priorities; of equal items the last counts.

        Raises:
            ValueError: a priority is negative or no number.
        """
        if self._by_priority is None or self._tree is None or not items.size:
            return
        exact = priorities.astype(np.float64)
        least, greatest = float(exact.min()), float(exact.max())
        # Both are NaN where one is.
        if not 0 <= least <= greatest < np.inf:
            raise ValueError(f"priorities are finite and not negative; these go from {least} to {greatest}")
        self._greatest = max(self._greatest, greatest)
        shares = exact**self._by_priority.alpha
        # 0 ** 0 would be 1, and what shall never be drawn would be.
        self._tree.set(items, shares if least else np.where(exact > 0, shares, 0.0))

    def draw(self, count: int) -> tuple[_Indices, _Numbers]:
        """So many items, `[N]`, and their probabilities, float64 `[N]`; the set must not be empty.

        Items are in the order of memory, in which they are read faster; slices of the mass are anyway.
        """
        if self._by_priority is None or self._tree is None or not self._tree.sum:
            return np.sort(self._set.draw(count, self._generator)), np.full(count, 1 / len(self._set))
        share, whole = self._by_priority.uniform_share, self._tree.sum
        masses = (np.arange(count) + self._generator.random(count)) * (whole / count)
        items = self._tree.find(masses)
        if share:
            uniform = np.flatnonzero(self._generator.random(count) < share)
            items[uniform] = self._set.draw(uniform.size, self._generator)
        return items, (1 - share) * (self._tree.values(items) / whole) + share / len(self._set)

    def save_state(self, used: int) -> dict[str, Any]:
        """All that further draws depend on; items are less than `used`."""
        state: dict[str, Any] = {**self._set.save_state(), "generator": dict(self._generator.bit_generator.state)}
        if self._tree is not None:
            assert self._by_priority is not None
            shares = {"priorities": self._tree.values(slice(0, used)).copy(), "greatest": self._greatest}
            state |= {**shares, "alpha": self._by_priority.alpha}
        return state

    def fits(self, state: Mapping[str, Any]) -> bool:
        """Whether items were drawn in the same way when that state was saved."""
        return bool(state.get("alpha") == (None if self._by_priority is None else self._by_priority.alpha))

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `save_state` gave."""
        self._set.load_state(state)
        self._generator.bit_generator.state = state["generator"]
        if self._tree is not None:
            self._tree.reset(state["priorities"])
            self._greatest = float(state["greatest"])

    def known_shares(self, state: Mapping[str, Any], used: int) -> tuple[NDArray[np.bool_], _Numbers] | None:
        """Which of the first `used` items could be drawn when that state was saved, and priority^alpha of each.

        None if it was drawn in another way, so that priorities say nothing here.
        """
        if self._tree is None or not self.fits(state):
            return None
        known = np.zeros(used, bool)
        known[state["items"]] = True
        return known, np.asarray(state["priorities"])

    def add_known(self, items: _Indices, shares: _Numbers, greatest: float) -> None:
        """Adds items with priority^alpha of each as it was saved.

        Args:
            items: each once.
            shares: of each.
            greatest: priority so far.
        """
        assert self._tree is not None
        self._set.add(items)
        self._tree.set(items, shares)
        self._greatest = max(self._greatest, greatest)
