"""Room for the stacks of one observation in a trainer's batch, which holds every frame once.

Letters: T records of a fragment, n frames of a stack, C axes of a block's columns (environments and agents), K blocks,
F frames of a batch.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

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
        self._columns = math.prod(each)
        frames, stacks = (
            records * blocks * self._columns for records in (field.shape[0], field.shape[0] - self._stack.frames + 1)
        )
        dtype = torch.from_numpy(np.empty(0, field.dtype)).dtype
        self.frames = torch.zeros((frames + 1, *entry), dtype=dtype, pin_memory=pinned)
        """`[F + 1, ...]`; the last stays zero."""
        self.places = torch.zeros((stacks, self._stack.frames), dtype=torch.int64, pin_memory=pinned)
        """`[(T + 1) x K x C, n]`."""
        self._frames = self.frames.numpy()[:-1].reshape(-1, blocks, *each, *entry)
        self._places = self.places.numpy().reshape(-1, blocks, *each, self._stack.frames)
        self._shape = batch_array(field, columns).shape

    def put(self, frames: Array, own: Array, block: int) -> None:
        """Copies a block's frames, `[T + n, C, ...]`; `own` is what `own_frames` says of them."""
        self._frames[:, block] = frames
        chosen = frames_of(own, self._stack)
        _, blocks, *each = self._frames.shape[: own.ndim + 1]
        column = np.arange(block * self._columns, (block + 1) * self._columns).reshape(*each, 1)
        self._places[:, block] = np.where(chosen < 0, len(self.frames) - 1, chosen * (blocks * self._columns) + column)

    def stacks(self, frames: Tensor, places: Tensor) -> FrameStacks:
        """The stacks of what `frames` and `places` hold where the batch is computed with."""
        return FrameStacks(frames, places, self._shape)
