"""Room for the stacks of one observation in a trainer's batch, which holds every frame once.

Letters: T records of a fragment, n frames of a stack, C axes of a block's columns (environments and agents), K blocks,
F frames of a batch.
"""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from srlhpc.algorithms.host_tensors import zeros
from srlhpc.algorithms.stacked_fields import FrameStacks
from srlhpc.data.batch_arrays import batch_array
from srlhpc.data.layout import Array, Field
from srlhpc.data.stacks import frames_of


class StackRoom:
    """Frames of all blocks of a batch in host memory, and which of them make each stack.

    Args:
        field: of a block, with a stack.
        blocks: K.
        columns: of a whole batch.
        pinned: whether the memory is pinned.
    """

    def __init__(self, field: Field, blocks: int, columns: int, *, pinned: bool) -> None:
        assert field.stack is not None
        self.name, self._stack = field.name, field.stack
        axes = len(field.axes)
        each, entry = field.shape[1:axes], field.shape[axes:]
        self._column = np.arange(blocks * math.prod(each)).reshape(blocks, *each, 1)
        """Which of the batch's columns each of a block is."""
        records = field.shape[0]
        frames, stacks = (count * self._column.size for count in (records, records - self._stack.frames + 1))
        self.frames = zeros((frames + 1, *entry), field.dtype, pinned=pinned)
        """`[F + 1, ...]`; the last stays zero."""
        self.places = zeros((stacks, self._stack.frames), "int64", pinned=pinned)
        """`[(T + 1) x K x C, n]`."""
        self._frames = self.frames.numpy()[:-1].reshape(-1, blocks, *each, *entry)
        self._places = self.places.numpy().reshape(-1, blocks, *each, self._stack.frames)
        self._shape = batch_array(field, columns).shape

    def put(self, frames: Array, own: Array, block: int) -> None:
        """Copies a block's frames, `[T + n, C, ...]`; `own` is what `own_frames` says of them."""
        self._frames[:, block] = frames
        chosen = frames_of(own, self._stack)
        places = chosen * self._column.size + self._column[block]
        self._places[:, block] = np.where(chosen < 0, len(self.frames) - 1, places)

    def stacks(self, frames: Tensor, places: Tensor) -> FrameStacks:
        """The stacks of what `frames` and `places` hold where the batch is computed with."""
        return FrameStacks(frames, places, self._shape)
