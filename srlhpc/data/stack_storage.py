"""The frames of one observation of many blocks, each stored once, and whole stacks of any of their records.

Letters: M slots, T records of a block, n frames of a stack, C columns of a block, R records of a window, N windows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.layout import Array, Field
from srlhpc.data.stacks import places_in_stack

Indices = NDArray[np.int64]


class StackStorage:
    """The frames of the blocks of all slots, as blocks hold them (data/stacks.py)."""

    def __init__(self, field: Field, slots: int) -> None:
        """Makes room for so many blocks of which `field` is a field with a stack."""
        assert field.stack is not None
        axes = len(field.axes)
        self._stack, entry = field.stack, field.shape[axes:]
        self._columns = math.prod(field.shape[1:axes])
        self._seen = (field.shape[0] - field.stack.frames + 1) * self._columns
        """Stacks of one block: (T + 1) x C."""
        frames = slots * field.shape[0] * self._columns
        self._flat: Array = np.zeros((frames + 1, *entry), field.dtype)
        """All frames, and behind them one of zeros."""
        self._zeros = frames
        self.frames: Array = self._flat[:frames].reshape(slots, *field.shape)
        """`[M, T + n, E, A, ...]`."""
        self._places = np.arange(field.stack.frames)

    def gather(self, seen: Indices, own: NDArray[np.uint8], out: Array | None = None) -> Array:
        """Whole stacks, in one copy.

        Args:
            seen: any shape, usually `[R + 1, N]`: which stacks, as (slot x (T + 1) + record) x C + column.
            own: the same shape: what `own_frames` says of them.
            out: `[*seen, n, ...]`.
        """
        frames = self._stack.frames
        # Each block has n - 1 frames more than stacks.
        first = seen + seen // self._seen * ((frames - 1) * self._columns)
        begins = int(own.min(initial=frames)) < frames
        places = places_in_stack(own, self._stack) if begins else self._places
        index = first[..., None] + places * self._columns
        if begins and self._stack.filled_with == "zeros":
            index[places < 0] = self._zeros
        # `clip` saves a copy: every index is in range.
        found: Array = self._flat.take(index, 0, out, "clip")
        return found
