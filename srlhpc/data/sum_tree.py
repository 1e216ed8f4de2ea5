"""Numbers that are drawn with a chance in proportion to their size, in time that grows with the logarithm of their
count (Schaul et al. 2016, Prioritized Experience Replay, appendix B.2.1). Vectorised; float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Numbers = NDArray[np.float64]
_Indices = NDArray[np.int64]


class SumTree:
    """A binary tree whose leaves are `capacity` numbers, at first 0, and whose nodes are the sums of their children.

    A node is always computed from its children, never corrected by a difference, so no rounding error gathers.
    """

    def __init__(self, capacity: int) -> None:
        self._depth = max(1, (capacity - 1).bit_length())
        self._first_leaf = 1 << self._depth
        # Node 1 is the root; the children of i are 2 i and 2 i + 1.
        self._nodes: _Numbers = np.zeros(2 * self._first_leaf)

    @property
    def sum(self) -> float:
        """Sum of all numbers."""
        return float(self._nodes[1])

    def values(self, indices: _Indices | slice) -> _Numbers:
        """Some of the numbers."""
        return self._nodes[self._first_leaf :][indices]

    def set(self, indices: _Indices, values: _Numbers | float) -> None:
        """Replaces some numbers, which are finite and not negative; of equal indices the last counts."""
        if not indices.size:
            return
        nodes = indices + self._first_leaf
        self._nodes[nodes] = values
        for _ in range(self._depth):
            nodes = _distinct(nodes >> 1)
            self._nodes[nodes] = self._nodes[2 * nodes] + self._nodes[2 * nodes + 1]

    def reset(self, values: _Numbers) -> None:
        """Replaces all numbers, the first ones by these and the others by 0."""
        self._nodes[:] = 0.0
        self.set(np.arange(values.size), values)

    def find(self, masses: _Numbers) -> _Indices:
        """The index whose share of `[0, sum)`, in the order of indices, holds each mass; never one whose number is 0.

        Only where all numbers are 0 there is none to find.
        """
        nodes = np.ones(masses.shape, np.int64)
        rest = masses.copy()
        for _ in range(self._depth):
            nodes <<= 1
            left = self._nodes[nodes]
            # A mass may be beyond the last number by a rounding error: then the way right leads to zeros only.
            right = (rest >= left) & (self._nodes[nodes + 1] > 0)
            rest -= np.where(right, left, 0.0)
            nodes += right
        return nodes - self._first_leaf


def _distinct(nodes: _Indices) -> _Indices:
    """The same nodes with fewer repetitions: neighbours that are equal become one."""
    keep = np.empty(nodes.shape, bool)
    keep[0] = True
    np.not_equal(nodes[1:], nodes[:-1], out=keep[1:])
    return nodes[keep]
