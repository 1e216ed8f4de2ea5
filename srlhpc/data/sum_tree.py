"""Numbers that are drawn with a chance in proportion to their size, in time that grows with the logarithm of their
count (Schaul et al. 2016, Prioritized Experience Replay, appendix B.2.1). Vectorised; float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Numbers = NDArray[np.float64]
_Indices = NDArray[np.int64]
_FLAT_LEVELS = 12
"""Levels from the root down that are one running sum instead: adding up all nodes of the last costs less than a call of
numpy for each."""


class SumTree:
    """`capacity` numbers, at first 0: the leaves of a binary tree of sums, with one running sum in place of its top.

    A node is always computed from its children, never corrected by a difference, so no rounding error gathers.
    """

    def __init__(self, capacity: int) -> None:
        depth = max(1, (capacity - 1).bit_length())
        flat = min(depth, _FLAT_LEVELS)
        self._lower_levels = depth - flat
        self._first_leaf, self._first_middle = 1 << depth, 1 << flat
        # The children of node i are 2 i and 2 i + 1; nodes above the middle ones are not used.
        self._nodes: _Numbers = np.zeros(2 * self._first_leaf)
        self._children = self._nodes.reshape(-1, 2)
        self._leaves = self._nodes[self._first_leaf :]
        used = 1 + ((capacity - 1) >> self._lower_levels)
        self._middle = self._nodes[self._first_middle : self._first_middle + used]
        self._edges: _Numbers = np.zeros(used + 1)
        """Where the shares of the middle nodes begin and end."""
        self._stale = False
        """Whether numbers changed since the edges were computed."""

    @property
    def sum(self) -> float:
        """Sum of all numbers."""
        return float(self._new_edges()[-1])

    def values(self, indices: _Indices | slice) -> _Numbers:
        """Some of the numbers."""
        return self._leaves[indices]

    def set(self, indices: _Indices, values: _Numbers | float) -> None:
        """Replaces some numbers, which are finite and not negative; of equal indices the last counts."""
        self._leaves[indices] = values
        nodes = indices + self._first_leaf
        for _ in range(self._lower_levels):
            nodes >>= 1
            children = self._children.take(nodes, axis=0)
            self._nodes[nodes] = children[:, 0] + children[:, 1]
        self._stale = True

    def reset(self, values: _Numbers) -> None:
        """Replaces all numbers, the first ones by these and the others by 0."""
        self._leaves[:] = 0.0
        self._leaves[: values.size] = values
        level = self._first_leaf
        while level > self._first_middle:
            children, level = self._children[level // 2 : level], level // 2
            np.add(children[:, 0], children[:, 1], out=self._nodes[level : 2 * level])
        self._stale = True

    def _new_edges(self) -> _Numbers:
        if self._stale:
            np.cumsum(self._middle, out=self._edges[1:])
            self._stale = False
        return self._edges

    def find(self, masses: _Numbers) -> _Indices:
        """The index whose share of `[0, sum)`, in the order of indices, holds each mass; never one whose number is 0.

        Only where all numbers are 0 there is none to find.
        """
        edges = self._new_edges()
        place = edges[1:-1].searchsorted(masses, side="right")
        nodes = place + self._first_middle
        if self._lower_levels:
            rest = masses - edges[place]
        for _ in range(self._lower_levels):
            nodes <<= 1
            left = self._nodes.take(nodes)
            right = rest >= left
            left *= right
            rest -= left
            nodes += right
        found = nodes - self._first_leaf
        # Edges are rounded: a mass beside one may lead to a number that is 0.
        wrong = np.flatnonzero(self._leaves[found] == 0)
        if wrong.size:
            found[wrong] = self._find_surely(masses[wrong])
        return found

    def _find_surely(self, masses: _Numbers) -> _Indices:
        """What `find` gives, never turning to a side where all numbers are 0."""
        edges = self._new_edges()
        within = np.minimum(masses, np.nextafter(edges[-1], 0))
        place = edges[1:].searchsorted(within, side="right")
        nodes: _Indices = place + self._first_middle
        rest = within - edges[place]
        for _ in range(self._lower_levels):
            nodes <<= 1
            left = self._nodes[nodes]
            right = (rest >= left) & (self._nodes[nodes + 1] > 0)
            rest -= np.where(right, left, 0.0)
            nodes += right
        return nodes - self._first_leaf
