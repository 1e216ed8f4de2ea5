"""Blocks of several groups in memory that is allocated once, and any window of their records in one copy a field.

Letters: M slots, T records of a block, S starts of windows in a block, C columns of a block (E environments, each with
A agents or as one joint column), R records of a window, N windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.blocks import CHUNK_STATE, FINAL_STATE, NEW_STACKS, STATE, BlockHeader
from srlhpc.data.layout import Array, Axis, Field, Layout
from srlhpc.data.segments import Run
from srlhpc.data.stack_storage import StackStorage
from srlhpc.data.stacks import own_frames
from srlhpc.data.windows import CUT, WindowShape

Indices = NDArray[np.int64]
NOTHING = -1
"""Slot of a block that is not there."""
_NO_RECORD = ("valid", "terminated", "truncated", "rewards")
"""Fields that are zero in records behind a cut."""
_LINKS = ("group", "sequence", "next", "previous")
_SMALL_BYTES = 64
"""Fields of a column's record with at most so many bytes lie side by side: one place in memory for all of them."""


class Block(Protocol):
    """What is stored of a message (comm/channel.py)."""

    @property
    def header(self) -> NDArray[np.int64]: ...

    @property
    def fields(self) -> Mapping[str, Array]: ...


class Places(NamedTuple):
    """Where the records of N windows lie: indices into arrays that are flat up to one entry."""

    items: Indices
    """`[N]`."""
    slots: Indices
    """`[N]`: of the first records."""
    of_group: Indices
    """`[R, N]`, where a record of a group has one entry."""
    of_column: Indices
    """`[R, N]`, where it has one for each column."""
    seen: Indices
    """`[R + 1, N]`, where in addition blocks have T + 1 entries."""
    lengths: Indices | None
    """`[N]`: records up to the cut, R if there is none; None: no window is cut."""
    small: Array
    """`[R, N]` of all small fields."""


class BlockStorage:
    """Blocks by slot, linked in the order of their group's sequence.

    An item is the window that begins at one start of one column: item = (slot x S + start) x C + column.
    """

    def __init__(self, block: Layout, window: WindowShape, slots: int) -> None:
        """Allocates all slots; the machine gives memory when it is first written."""
        valid = next(item for item in block.fields if item.name == "valid")
        self._records, *columns = valid.shape[: len(valid.axes)]
        self._columns = math.prod(columns)
        self.block_records = self._records * self._columns
        """Records of one block, of all its columns."""
        self._starts = -(-self._records // window.stride)
        self.per_slot = self._starts * self._columns
        """Items of a block: S x C."""
        self._stride = window.stride
        self._size = window.records
        self._spans = window.spans(self._records)
        self._reach = int(self._spans[-1])
        self._rows = np.minimum(np.arange(self._size + 1), self._size - 1)[:, None]
        self._beyond = (np.arange(self._size + 1) == self._size)[:, None]
        small = [
            (item.name, item.dtype, item.shape[len(item.axes) :])
            for item in block.fields
            if _is_small(item, valid.axes, self._records)
        ]
        # Aligned, so that each field by itself is an array like any other.
        packed = np.zeros((slots, self._records, *columns), np.dtype(small, align=True))
        self._small_names = tuple(name for name, *_ in small)
        self._small = packed.reshape(-1)
        """All small fields, with one axis for slots, records and columns."""
        self._arrays: dict[str, Array] = {name: packed[name] for name in self._small_names}
        self._flat: dict[str, Array] = {}
        """The same memory with the axes of slots, records and columns as one."""
        self._indices: dict[str, Callable[[Places], Indices]] = {}
        """Which of the places a field is taken from."""
        self._stacks: dict[str, StackStorage] = {}
        for item in block.fields:
            if item.name in self._arrays:
                continue
            if item.name.startswith(STATE):
                # A state is stored before every start: that of the block and those of its chunks.
                shape, axes = (slots, self._starts, *item.shape), 2 + len(item.axes)
                self._indices[item.name] = attrgetter("items")
            elif item.name.startswith((CHUNK_STATE, FINAL_STATE)):
                continue
            elif item.stack is not None:
                self._stacks[item.name] = StackStorage(item, slots)
                self._arrays[item.name] = self._stacks[item.name].frames
                continue
            else:
                shape, axes = (slots, *item.shape), 1 + len(item.axes)
                of_columns = "seen" if item.shape[0] > self._records else "of_column"
                assert item.axes in (valid.axes, valid.axes[:1]), "who has a value is a column, or the group"
                self._indices[item.name] = attrgetter(of_columns if item.axes == valid.axes else "of_group")
            # Of beginnings the distance to the last one is kept.
            self._arrays[item.name] = array = np.zeros(shape, "uint8" if item.name == NEW_STACKS else item.dtype)
            self._flat[item.name] = array.reshape(-1, *shape[axes:])
        self.names = (*(name for name in self._arrays if name != NEW_STACKS), CUT)
        """Every field that windows have."""
        self._apart = tuple(name for name in self.names if name not in self._small_names)
        """Which of them are not small."""
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
            if name == NEW_STACKS:
                array[slot] = own_frames(fields[name])
                continue
            if not name.startswith(STATE):
                array[slot] = fields[name]
                continue
            array[slot, 0] = fields[name]
            if self._starts > 1:
                array[slot, 1:] = fields[CHUNK_STATE + name.removeprefix(STATE)]

    def _reaching(self, slot: int, *, beyond: bool) -> list[Indices]:
        """Items whose last record lies in the block of a slot, or with `beyond` those that lack records behind it."""
        items, distance = [], 0
        while slot != NOTHING and distance <= self._reach:
            starts = np.flatnonzero(self._spans > distance if beyond else self._spans == distance)
            first = (slot * self._starts + starts) * self._columns
            items.append((first[:, None] + np.arange(self._columns)).reshape(-1))
            slot, distance = int(self._previous[slot]), distance + 1
        return items

    def oldest_versions(self, used: int) -> Indices:
        """Least version that a record of each of the first `used` slots acted on."""
        versions: Indices = self._arrays["versions"][:used].min(axis=1)
        return versions

    def remove(self, slot: int) -> None:
        """Forgets the block of a slot, which is the oldest of its group."""
        group, following = int(self._group[slot]), int(self._next[slot])
        if self._newest.get(group) == slot:
            del self._newest[group]
        if following != NOTHING:
            self._previous[following] = NOTHING
        self._group[slot] = self._next[slot] = NOTHING

    def end_sequences(self) -> Indices:
        """No block follows on those that are here; returns the items that lack records behind, which are whole now."""
        items = [part for slot in self._newest.values() for part in self._reaching(slot, beyond=True)]
        self._newest = {}
        return np.concatenate(items) if items else np.zeros(0, np.int64)

    # --- windows -----------------------------------------------------------------------------------------------------

    def places(self, items: Indices) -> Places:
        """Where the windows of some whole items lie."""
        if self._size == self._stride == 1:
            return self._places_of_one(items)
        records, columns = self._records, self._columns
        # Two divisions and their remainders, in half the time of numpy's divmod.
        cell = items // columns
        slot = cell // self._starts
        first = (cell - slot * self._starts) * self._stride
        rows, beyond, lengths = self._rows, self._beyond, None
        if not self._reach:
            positions = first + rows
            of_group = positions + slot * records
            slots = slot
        else:
            chain = self._chain(slot)
            stored = np.count_nonzero(chain != NOTHING, axis=0) * records - first
            if int(stored.min(initial=self._size)) < self._size:
                lengths = np.minimum(stored, self._size)
                rows = np.minimum(np.arange(self._size + 1)[:, None], lengths - 1)
                beyond = np.arange(self._size + 1)[:, None] >= lengths
            positions = first + rows
            block = positions // records
            slots = chain[block, np.arange(items.size)]
            of_group = positions + (slots - block) * records
        of_column = of_group * columns + (items - cell * columns)
        seen = of_column + (slots + beyond) * columns
        of_column = of_column[:-1]
        return Places(items, slot, of_group[:-1], of_column, seen, lengths, self._small.take(of_column, mode="clip"))

    def _places_of_one(self, items: Indices) -> Places:
        """The same for windows of one record, each of which is an item: its number says where it lies."""
        cell = items // self._columns
        slot = cell // self._starts
        seen = np.empty((2, items.size), np.int64)
        np.add(items, slot * self._columns, out=seen[0])
        np.add(seen[0], self._columns, out=seen[1])
        return Places(items, slot, cell[None], items[None], seen, None, self._small.take(items[None], mode="clip"))

    def _chain(self, slot: Indices) -> Indices:
        """Slots of the blocks that follow on some, as many as a window may reach into, `[reach + 1, N]`."""
        chain = np.full((self._reach + 1, slot.size), NOTHING)
        chain[0] = slot
        for distance in range(1, len(chain)):
            chain[distance] = np.where(slot == NOTHING, NOTHING, self._next[slot])
            slot = chain[distance]
        return chain

    def fill(self, places: Places, fields: Mapping[str, Array]) -> None:
        """Writes all fields of some windows, as data/windows.py lays them out."""
        for name in self._apart:
            self._take(name, places, fields[name])
        for name in self._small_names:
            fields[name][...] = places.small[name]
        if places.lengths is not None:
            behind = self._behind(places.lengths)
            for name in _NO_RECORD:
                fields[name][behind] = 0

    def gather(self, name: str, places: Places) -> Array:
        """One field of some windows, as `fill` writes it; a small one is part of `places` and cleared there."""
        found = self._take(name, places) if name in self._apart else places.small[name]
        if places.lengths is not None and name in _NO_RECORD:
            found[self._behind(places.lengths)] = 0
        return found

    def _take(self, name: str, places: Places, out: Array | None = None) -> Array:
        """A field that is not small."""
        if name == CUT:
            return _cut(places, out)
        if name in self._stacks:
            return self._stacks[name].gather(places.seen, self._flat[NEW_STACKS].take(places.seen), out)
        # `clip` saves a copy: every index is in range.
        found: Array = self._flat[name].take(self._indices[name](places), 0, out, "clip")
        return found

    def _behind(self, lengths: Indices) -> NDArray[np.bool_]:
        """Which records are behind a cut, `[R, N]`."""
        return np.asarray(np.arange(self._size)[:, None] >= lengths)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def save_state(self, used: int) -> dict[str, Any]:
        """How the first `used` slots are linked; their records are in segments."""
        links = {name: getattr(self, f"_{name}")[:used].copy() for name in _LINKS}
        newest = np.array(sorted(self._newest.items()), np.int64).reshape(-1, 2)
        return {"newest": newest, **links}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `save_state` gave; `load` brings the records."""
        for name in _LINKS:
            links = getattr(self, f"_{name}")
            links[:] = NOTHING
            links[: len(state[name])] = state[name]
        self._newest = {int(group): int(slot) for group, slot in state["newest"]}

    def run(self, slot: int, count: int, first: int) -> Run:
        """Blocks of consecutive slots, whose first has that number; arrays are the store's own memory."""
        chosen = slice(slot, slot + count)
        fields = {name: array[chosen] for name, array in self._arrays.items()}
        return Run(first, self._group[chosen], self._sequence[chosen], fields)

    def load(self, slots: Indices, run: Run, chosen: Indices) -> None:
        """Copies the records of some blocks of a run into slots.

        Raises:
            ValueError: they are of other shapes.
        """
        for name, array in self._arrays.items():
            found = run.fields.get(name)
            if found is None or found.shape[1:] != array.shape[1:] or found.dtype != array.dtype:
                raise ValueError(f"blocks that were kept have no such field as {name} {array.shape[1:]}")
            array[slots] = found[chosen]

    def link(self, group: Indices, sequence: Indices) -> None:
        """Links the first slots, whose blocks are in the order in which they came; none of them goes on."""
        newest: dict[int, int] = {}
        used = len(group)
        self._group[:used], self._sequence[:used] = group, sequence
        for slot, number in enumerate(group.tolist()):
            before = newest.get(number, NOTHING)
            if before != NOTHING and sequence[slot] == sequence[before] + 1:
                self._next[before], self._previous[slot] = slot, before
            newest[number] = slot


def _is_small(item: Field, axes: tuple[Axis, ...], records: int) -> bool:
    """Whether a field has few bytes for each record of each column, which these axes count."""
    if item.stack is not None or item.axes != axes or item.shape[0] != records:
        return False
    return item.size_bytes <= _SMALL_BYTES * math.prod(item.shape[: len(axes)])


def _cut(places: Places, out: Array | None) -> Array:
    cut = np.empty(places.of_group.shape, bool) if out is None else out
    cut[...] = False
    if places.lengths is not None:
        columns = np.flatnonzero(places.lengths < len(cut))
        cut[places.lengths[columns] - 1, columns] = True
    return cut
