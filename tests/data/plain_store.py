"""A slow store of blocks that is plainly right: lists of records by column, searched anew for every question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from srlhpc.comm.channel import Message
from srlhpc.data.blocks import BlockHeader, PolicyShapes, block_layout, record_fields
from srlhpc.data.layout import Array, Layout
from srlhpc.data.windows import WindowShape
from srlhpc.environment import ArraySpec, Discrete, Kind

OBSERVATION = ArraySpec((2,), "float32")


@dataclass(frozen=True)
class Setup:
    """Sizes of blocks and windows."""

    records: int = 4
    environments: int = 2
    agents: int = 1
    window: WindowShape = field(default_factory=lambda: WindowShape(1))
    has_memory: bool = False
    joint: bool = False

    @property
    def shapes(self) -> PolicyShapes:
        kind = Kind("k", tuple("abc"[: self.agents]), {"x": OBSERVATION}, Discrete(3), has_action_masks=True)
        state = {"h": ArraySpec((2,), "float32")} if self.has_memory else {}
        kind = replace(kind, state=OBSERVATION if self.joint else None)
        return PolicyShapes(kind, state, {"q": ArraySpec((), "float32")}, (), self.agents if self.joint else None)

    @property
    def columns(self) -> int:
        return self.environments * (1 if self.joint else self.agents)

    @property
    def starts(self) -> int:
        return self.records // self.window.stride

    @property
    def block(self) -> Layout:
        chunks = self.starts if self.has_memory else 1
        return block_layout(self.shapes, self.records, self.environments, self.agents, chunks)


@dataclass
class Given:
    """A block of a group, and whether the block before it of this group is missing."""

    group: int
    follows: bool
    valid_share: float = 1.0
    seed: int = 0


def blocks(setup: Setup, given: list[Given]) -> Iterator[Message]:
    """Blocks whose numbers are all different, so that nothing can be mistaken for anything else."""
    sequences: dict[int, int] = {}
    counter = 0
    for item in given:
        generator = np.random.default_rng(item.seed)
        message = Message.allocate(setup.block, 0)
        for name, array in message.fields.items():
            if array.dtype == bool:
                array[...] = generator.random(array.shape) < 0.5
            else:
                array[...] = np.arange(counter, counter + array.size).reshape(array.shape)
                counter += array.size
            if name == "valid":
                array[...] = generator.random(array.shape) < item.valid_share
        sequence = sequences.get(item.group, -1) + (1 if item.follows else 2)
        sequences[item.group] = sequence
        valid = message.fields["valid"]
        message.header[BlockHeader.GROUP], message.header[BlockHeader.SEQUENCE] = item.group, sequence
        message.header[BlockHeader.VALID] = np.count_nonzero(valid)
        message.header[BlockHeader.STEPS] = np.count_nonzero(valid.any(axis=2))
        yield message


class PlainStore:
    """What a store of so many blocks must be able to draw."""

    def __init__(self, setup: Setup, slots: int) -> None:
        self.setup, self.slots = setup, slots
        self._came: list[Message] = []

    def add(self, block: Message) -> None:
        self._came.append(block)

    def windows(self) -> dict[tuple[int, int], dict[str, Any]]:
        """(Item, generation) to the fields of each window that can be drawn."""
        found = {}
        for number in range(max(0, len(self._came) - self.slots), len(self._came)):
            for start in range(self.setup.starts):
                for column in range(self.setup.columns):
                    window = self._window(number, start, column)
                    if window is not None:
                        item = (number % self.slots * self.setup.starts + start) * self.setup.columns + column
                        found[item, number // self.slots] = window
        return found

    def _window(self, number: int, start: int, column: int) -> dict[str, Any] | None:
        shape = self.setup.window
        places: list[tuple[Message, int]] = []
        block, t = self._came[number], start * shape.stride
        is_cut = False
        while len(places) < shape.records and not is_cut:
            if t == self.setup.records:
                after = next((b for b in self._came[number + 1 :] if self._group(b) == self._group(block)), None)
                if after is None:
                    return None
                if self._sequence(after) != self._sequence(block) + 1:
                    is_cut = True
                else:
                    number, block, t = next(n for n, b in enumerate(self._came) if b is after), after, 0
            else:
                places.append((block, t))
                t += 1
        window = self._fields(places, column)
        if not window["valid"][shape.burn_in_steps : shape.burn_in_steps + shape.fragment_steps].any():
            return None
        if self.setup.has_memory:
            states = places[0][0].fields
            state = states["state.h"] if start == 0 else states["chunk_state.h"][start - 1]
            window["state.h"] = self._of(state, column)
        return window

    def _fields(self, places: list[tuple[Message, int]], column: int) -> dict[str, Any]:
        """Fields of one column with records that never were behind the last."""
        size, stored = self.setup.window.records, len(places)
        last, last_t = places[-1]
        window: dict[str, Any] = {}
        for item in record_fields(self.setup.shapes):
            values = []
            for row in range(size + item.has_bootstrap):
                block, t = places[row] if row < stored else (last, last_t + item.has_bootstrap)
                value = block.fields[item.name][t]
                values.append(value if item.of == "group" else self._of(value, column))
                if row >= stored and item.name in ("valid", "rewards", "terminated", "truncated"):
                    values[-1] = np.zeros_like(values[-1])
            window[item.name] = np.array(values)
        window["cut"] = np.array([row == stored - 1 and stored < size for row in range(size)])
        return window

    def _of(self, value: Array, column: int) -> Array:
        if self.setup.joint:
            return value[column]
        return value[column // self.setup.agents, column % self.setup.agents]

    @staticmethod
    def _group(block: Message) -> int:
        return int(block.header[BlockHeader.GROUP])

    @staticmethod
    def _sequence(block: Message) -> int:
        return int(block.header[BlockHeader.SEQUENCE])


def columns_of(fields: Mapping[str, Array], names: Mapping[str, Any], column: int) -> dict[str, Array]:
    """One window of a message."""
    return {name: fields[name][column] if name.startswith("state.") else fields[name][:, column] for name in names}
