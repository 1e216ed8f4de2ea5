"""Blocks of several groups in memory that is allocated once, and any window of their records in one copy a field.

Letters: M slots, T records of a block, S starts of windows in a block, E environments of a group, A trained agents of
the policy in one, C = E x A columns of a block, R records of a window, N windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.blocks import CHUNK_STATE, FINAL_STATE, STATE, BlockHeader
from srlhpc.data.layout import Array, Axis, Layout
from srlhpc.data.windows import CUT, WindowShape

Indices = NDArray[np.int64]
NOTHING = -1
"""Slot of a block that is not there."""
_NO_RECORD = ("valid", "terminated", "truncated", "rewards")
"""Fields that are zero in records behind a cut."""
_LINKS = ("group", "sequence", "next", "previous")


class Block(Protocol):
    """What is stored of a message (comm/channel.py)."""

    @property
    def header(self) -> NDArray[np.int64]: ...

    @property
    def fields(self) -> Mapping[str, Array]: ...


@dataclass(frozen=True)
class Places:
    """Where the records of N windows lie: indices into arrays that are flat up to one entry."""

    items: Indices
    """`[N]`."""
    of_group: Indices
    """`[R, N]`, where a record of a group has one entry."""
    of_column: Indices
    """`[R, N]`, where it has one for each column."""
    seen: Indices
    """`[R + 1, N]`, where in addition blocks have T + 1 entries."""
    lengths: Indices
    """`[N]`: records up to the cut; R if there is none."""

    @property
    def is_cut(self) -> bool:
        return bool(self.lengths.size) and int(self.lengths.min()) < len(self.of_group)


class BlockStorage:
    """Blocks by slot, linked in the order of their group's sequence.

    An item is the window that begins at one start of one column: item = (slot x S + start) x C + column.
    """

    def __init__(self, block: Layout, window: WindowShape, slots: int) -> None:
        """Allocates all slots; the machine gives memory when it is first written."""
        self._shapes = {item.name: item.shape for item in block.fields}
        self._records, environments, agents = self._shapes["valid"]
        self._columns = environments * agents
        self._starts = -(-self._records // window.stride)
        self._window = window
        self.per_slot = self._starts * self._columns
        """Items of a block: S x C."""
        self._offsets = np.arange(self._starts, dtype=np.int64) * window.stride
        self._spans: Indices = (self._offsets + window.records - 1) // self._records
        """How many blocks behind its own the window of each start reaches into."""
        self._arrays: dict[str, Array] = {}
        self._flat: dict[str, Array] = {}
        """The same memory with the axes of slots, records and columns as one."""
        self._of_group: set[str] = set()
        self._seen: set[str] = set()
        for item in block.fields:
            if item.name.startswith(STATE):
                # A state is stored before every start: that of the block and those of its chunks.
                shape = (slots, self._starts, *item.shape)
                axes = 2 + len(item.axes)
            elif item.name.startswith((CHUNK_STATE, FINAL_STATE)):
                continue
            else:
                shape = (slots, *item.shape)
                axes = 1 + len(item.axes)
                if Axis.AGENT not in item.axes:
                    self._of_group.add(item.name)
                if item.shape[0] > self._records:
                    self._seen.add(item.name)
            self._arrays[item.name] = array = np.zeros(shape, item.dtype)
            self._flat[item.name] = array.reshape(-1, *shape[axes:])
        self._group, self._sequence, self._next, self._previous = np.full((len(_LINKS), slots), NOTHING, np.int64)
        self._newest: dict[int, int] = {}
        """Group to the slot of its last block."""

    # --- blocks ------------------------------------------------------------------------------------------------------

    def put(self, slot: int, block: Block) -> Indices:
        """Writes a block into an empty slot.

        Returns:
            The items that became whole: their last record is there, or none follows to the one before.
        """
        group, sequence = int(block.header[BlockHeader.GROUP]), int(block.header[BlockHeader.SEQUENCE])
        previous = self._newest.get(group, NOTHING)
        self._group[slot], self._sequence[slot], self._newest[group] = group, sequence, slot
        self._write(slot, block.fields)
        whole = []
        if previous != NOTHING and sequence == self._sequence[previous] + 1:
            self._next[previous], self._previous[slot] = slot, previous
        elif previous != NOTHING:
            whole += self._reaching(previous, beyond=True)
        whole += self._reaching(slot, beyond=False)
        return np.concatenate(whole)

    def _write(self, slot: int, fields: Mapping[str, Array]) -> None:
        for name, array in self._arrays.items():
            if not name.startswith(STATE):
                array[slot] = fields[name]
                continue
            array[slot, 0] = fields[name]
            if self._starts > 1:
                array[slot, 1:] = fields[CHUNK_STATE + name.removeprefix(STATE)]

    def _reaching(self, slot: int, *, beyond: bool) -> list[Indices]:
        """Items whose last record lies in the block of a slot, or with `beyond` those that lack records behind it."""
        items, distance = [], 0
        while slot != NOTHING and distance <= self._spans[-1]:
            starts = np.flatnonzero(self._spans > distance if beyond else self._spans == distance)
            first = (slot * self._starts + starts) * self._columns
            items.append((first[:, None] + np.arange(self._columns)).reshape(-1))
            slot, distance = int(self._previous[slot]), distance + 1
        return items

    def remove(self, slot: int) -> None:
        """Forgets the block of a slot, which is the oldest of its group."""
        group, following = int(self._group[slot]), int(self._next[slot])
        if self._newest[group] == slot:
            del self._newest[group]
        if following != NOTHING:
            self._previous[following] = NOTHING
        self._group[slot] = self._next[slot] = NOTHING

    # --- windows -----------------------------------------------------------------------------------------------------

    def places(self, items: Indices) -> Places:
        """Where the windows of some whole items lie."""
        size, records = self._window.records, self._records
        start, column = np.divmod(items, self._columns)
        slot, start = np.divmod(start, self._starts)
        first = self._offsets[start]
        chain = np.full((int(self._spans[-1]) + 1, items.size), NOTHING)
        chain[0] = slot
        for behind in range(1, len(chain)):
            chain[behind] = np.where(slot == NOTHING, NOTHING, self._next[slot])
            slot = chain[behind]
        lengths = np.minimum(size, np.count_nonzero(chain != NOTHING, axis=0) * records - first)
        rows = np.arange(size + 1)[:, None]
        positions = first + np.minimum(rows, lengths - 1)
        block = positions // records
        slots = chain[block, np.arange(items.size)]
        of_group = positions + (slots - block) * records
        # The entry behind the last record is the block's own bootstrap.
        seen = (of_group + slots + (rows >= lengths)) * self._columns + column
        of_group = of_group[:-1]
        return Places(items, of_group, of_group * self._columns + column, seen, lengths)

    def gather(self, name: str, places: Places, out: Array | None = None) -> Array:
        """One field of some windows as data/windows.py lays it out, written to `out` if given."""
        if name == CUT:
            return _cut(places, out)
        if name.startswith(STATE):
            indices = places.items
        elif name in self._seen:
            indices = places.seen
        else:
            indices = places.of_group if name in self._of_group else places.of_column
        # `clip` saves a copy: every index is in range.
        found = np.take(self._flat[name], indices, axis=0, out=out, mode="clip")
        if name in _NO_RECORD and places.is_cut:
            found[np.arange(len(found))[:, None] >= places.lengths] = 0
        return found

    def names(self) -> tuple[str, ...]:
        """Every field that `gather` knows."""
        return (*self._arrays, CUT)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def save_state(self, used: int) -> dict[str, Any]:
        """The first `used` slots. Arrays are the store's own memory, so write them before anything changes."""
        links = {name: getattr(self, f"_{name}")[:used].copy() for name in _LINKS}
        newest = np.array(sorted(self._newest.items()), np.int64).reshape(-1, 2)
        return {"fields": {name: array[:used] for name, array in self._arrays.items()}, "newest": newest, **links}

    def fits(self, state: Mapping[str, Any]) -> bool:
        """Whether what `save_state` gave has these arrays and no more slots."""
        fields: Mapping[str, Array] = state["fields"]
        return fields.keys() == self._arrays.keys() and all(
            part.shape[1:] == self._arrays[name].shape[1:]
            and part.dtype == self._arrays[name].dtype
            and len(part) <= len(self._arrays[name])
            for name, part in fields.items()
        )

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `save_state` gave and `fits`."""
        for name, part in state["fields"].items():
            self._arrays[name][: len(part)] = part
        for name in _LINKS:
            links = getattr(self, f"_{name}")
            links[:] = NOTHING
            links[: len(state[name])] = state[name]
        self._newest = {int(group): int(slot) for group, slot in state["newest"]}


def _cut(places: Places, out: Array | None) -> Array:
    size = len(places.of_group)
    cut = np.zeros(places.of_group.shape, bool) if out is None else out
    cut[...] = False
    columns = np.flatnonzero(places.lengths < size)
    cut[places.lengths[columns] - 1, columns] = True
    return cut
