"""Gathers blocks, or messages of windows, into one contiguous time-major batch, field by field.

Letters: T records of a fragment, E environments, A agents, N windows of a message, K blocks or messages of a batch,
B = K x E x A or K x N columns; where columns are joint B = K x E or K x N, and A is an axis of each entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import EllipsisType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.algorithms.host_tensors import zeros
from srlhpc.algorithms.stacked_fields import StackedFields
from srlhpc.comm.channel import Message
from srlhpc.data.batch_arrays import batch_array, batch_columns, before_columns, column_axes, gathered_fields
from srlhpc.data.blocks import NEW_STACKS, BlockHeader
from srlhpc.data.layout import Array, Axis, Field, Layout
from srlhpc.data.stacks import own_frames
from srlhpc.data.windows import of_columns
from srlhpc.rl.policy_lag import PolicyLag, policy_lag
from srlhpc.roles.training.copy_stream import CopyStream, Transfer
from srlhpc.roles.training.stack_room import StackRoom

_STACKS = "stacks."
"""Begins the name of what says which frames make the stacks of a field."""
_COUNTS = ("filled", "valid", "steps", "oldest_version")


class Staging:
    """Room for one batch: in host memory and, with a stream, on the device."""

    def __init__(self, layout: Layout, blocks: int, device: torch.device, stream: CopyStream | None = None) -> None:
        """Makes the room.

        Args:
            layout: of a block, or of a message of windows.
            blocks: K.
            device: of the batch.
            stream: how a full batch gets there at once, beside the update before; None: the device is the CPU.
        """
        assert device.type == "cpu" or stream is not None
        self._blocks = blocks
        sizes = {axis: layout.size(axis) for axis in column_axes(layout)}
        self.columns = batch_columns(layout, blocks)
        """B, fragments of a whole batch."""
        self._tensors: dict[str, Tensor] = {}
        self._places: list[tuple[str, Array, _Stretch]] = []
        """Room for each block in turn, by field, and how the block's array is stretched to it."""
        self._stacks: list[StackRoom] = []
        pinned = device.type == "cuda"
        for field in gathered_fields(layout):
            if field.stack is not None:
                stacks = StackRoom(field, blocks, self.columns, pinned=pinned)
                self._tensors |= {field.name: stacks.frames, _STACKS + field.name: stacks.places}
                self._stacks.append(stacks)
                continue
            array = batch_array(field, self.columns)
            self._tensors[field.name] = tensor = zeros(array.shape, array.dtype, pinned=pinned)
            self._places.append((field.name, *_place(field, tensor.numpy(), blocks, sizes)))
        self._arrays = {name: tensor.numpy() for name, tensor in self._tensors.items()}
        self._transfer = Transfer(self._tensors, device, stream) if stream is not None else None
        self.clear()

    def clear(self) -> None:
        """Empties it, once the last update of its batch has ended; the next block goes first."""
        if self._transfer is not None:
            self._transfer.reuse()
        self.filled = 0
        self.valid = 0
        self.steps = 0
        self.oldest_version = 0

    @property
    def blocks(self) -> int:
        """K, blocks of a whole batch."""
        return self._blocks

    @property
    def block_columns(self) -> int:
        """Fragments that one block brings."""
        return self.columns // self._blocks

    @property
    def is_full(self) -> bool:
        return self.filled == self._blocks

    def add(self, block: Message) -> None:
        """Copies a block into the next columns."""
        oldest = int(block.header[BlockHeader.OLDEST_VERSION])
        self.oldest_version = min(oldest, self.oldest_version) if self.filled else oldest
        self.valid += int(block.header[BlockHeader.VALID])
        self.steps += int(block.header[BlockHeader.STEPS])
        self.put(block.fields, self.filled)

    def put(self, fields: Mapping[str, Array], place: int) -> None:
        """Copies a block or message into the columns of a place that is still empty."""
        for name, room, stretch in self._places:
            room[place] = fields[name][stretch]
        if self._stacks:
            own = own_frames(fields[NEW_STACKS])
            for stacks in self._stacks:
                stacks.put(fields[stacks.name], own, place)
        self.filled += 1
        self._send_if_full()

    @property
    def names(self) -> Set[str]:
        """Names of its arrays: the fields, and of each stack also which frames make it."""
        return self._arrays.keys()

    def array(self, name: str) -> Array:
        """A field in host memory, until the batch is cleared; of stacks the frames."""
        return self._arrays[name]

    def _send_if_full(self) -> None:
        if self._transfer is not None and self.is_full:
            self._transfer.begin()

    def lag(self, version: int) -> PolicyLag:
        """Policy lag of the batch at a trainer's version."""
        return policy_lag(version, *(torch.from_numpy(array) for array in self.ages(slice(None))))

    def ages(self, records: slice) -> tuple[Array, Array]:
        """Versions of behaviour of some records, int64 `[T, B]`, and whether they count, bool `[T, B]`."""
        return self._arrays["versions"][records], of_columns(self._arrays["valid"][records])

    def save_state(self) -> dict[str, Any]:
        """A copy of what is in it."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return counts | {"fields": {name: array.copy() for name, array in self._arrays.items()}}

    def load_state(self, state: Mapping[str, Any]) -> bool:
        """Takes back what `save_state` gave; false, and nothing is changed, if it is of other shapes."""
        fields: Mapping[str, Any] = state["fields"]
        shapes = {name: array.shape for name, array in self._arrays.items()}
        if {name: np.shape(array) for name, array in fields.items()} != shapes:
            return False
        self.clear()
        for name, array in fields.items():
            self._arrays[name][...] = array
        for name in _COUNTS:
            setattr(self, name, int(state[name]))
        self._send_if_full()
        return True

    def batch(
        self,
        *,
        version: int,
        steps: int,
        burn_in: int,
        is_first_use: bool = True,
        after: int = 0,
        weights: Tensor | None = None,
    ) -> Batch:
        """The batch on the device: this memory, so do not clear before the update has ended."""
        tensors = self._tensors if self._transfer is None else self._transfer.tensors()
        return Batch(
            self._fields(dict(tensors)),
            burn_in_steps=burn_in,
            version=version,
            steps=steps,
            is_first_use=is_first_use,
            after=after,
            weights=weights,
        )

    def _fields(self, tensors: dict[str, Tensor]) -> Mapping[str, Tensor]:
        if not self._stacks:
            return tensors
        stacks = {
            room.name: room.stacks(tensors.pop(room.name), tensors.pop(_STACKS + room.name)) for room in self._stacks
        }
        return StackedFields(tensors, stacks)


_Stretch = tuple[slice | EllipsisType | None, ...]


def _place(field: Field, array: Array, blocks: int, sizes: Mapping[Axis, int]) -> tuple[Array, _Stretch]:
    """Room for each block in a batch's array, and the index that adds the axes which a block's array lacks."""
    before = before_columns(field)
    columns = sizes.values()
    room = array.reshape(*field.shape[:before], blocks, *columns, *field.shape[len(field.axes) :])
    added = (slice(None) if axis in field.axes else None for axis in sizes)
    return np.moveaxis(room, before, 0), (*[slice(None)] * before, *added, ...)
