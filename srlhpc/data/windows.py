"""The layouts of what a replay rank and a trainer send each other: windows of records, and wishes for them.

A window is some consecutive records of one column (an agent of one environment of one group, or all its agents where
columns are joint), whichever blocks they came in. A message holds N of them side by side.

Letters: R records of a window, N windows of a message. Entries of joint columns have an axis of agents.

| field | shape |
|---|---|
| fields of records (data/blocks.py) | `[R, N, ...]`, with a bootstrap `[R + 1, N, ...]`; `versions` too; stacks whole |
| `cut` | `[R, N]` bool |
| `state.NAME` | `[N, ...]`, before record 0; only with memory |
| `slot`, `generation` | `[N]` int64: which item of the store it is, and how often windows of its place went before |
| `probability` | `[N]` float64: with which it was drawn from this store |

`cut` is true at a record that nothing follows in the store: sums and traces stop there and bootstrap from the next
observation, as at the window's end. All records behind it are invalid, bring no reward and no end, and repeat that
observation, so that networks see values that can occur.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.blocks import NEW_STACKS, STATE, PolicyShapes, record_fields
from srlhpc.data.layout import Axis, Field, Layout

CUT = "cut"
SLOT = "slot"
GENERATION = "generation"
PROBABILITY = "probability"
PRIORITY = "priority"


class WindowHeader(IntEnum):
    """Places in the header of a message of windows. 0 and 1 are those of every message (comm/channel.py)."""

    SEQUENCE = 2
    """Messages of windows that this store sent to this trainer before."""
    INSERTED_STEPS = 3
    """Environment steps that came into the store since the attempt began."""
    INSERTED_VALID = 4
    """Valid records that came into the store since the attempt began."""


class DrawHeader(IntEnum):
    """Places in the header of a wish for windows. 0 and 1 are those of every message (comm/channel.py)."""

    CREDIT = 2
    """Messages of windows that the trainer has room for from now on."""
    VERSION = 3
    """The trainer's version."""
    HAS_FEEDBACK = 4
    """Whether the fields hold priorities."""


@dataclass(frozen=True)
class WindowShape:
    """Which records of a column make a window."""

    fragment_steps: int
    """Records that are trained."""
    burn_in_steps: int = 0
    """Records before them, which only warm up the recurrent state."""
    after: int = 0
    """Records behind them, which targets need."""
    stride: int = 1
    """Records of a block from the start of one window to the start of the next."""

    @property
    def records(self) -> int:
        """R."""
        return self.burn_in_steps + self.fragment_steps + self.after

    def spans(self, block_records: int) -> NDArray[np.int64]:
        """How many blocks behind its own the window of each start in a block reaches into, `[starts]`."""
        return (np.arange(0, block_records, self.stride) + self.records - 1) // block_records


def of_columns(valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether records count: of flags `[R, N]` those, of joint ones `[R, N, A]` whether they do for any agent."""
    return np.asarray(valid.any(axis=2)) if valid.ndim > 2 else valid


def window_layout(shapes: PolicyShapes, records: int, columns: int, extra: Iterable[Field] = ()) -> Layout:
    """A message of `columns` windows of `records` records; the fields `extra` follow all others."""
    record, column = (Axis.RECORD, Axis.COLUMN), (Axis.COLUMN,)

    def fields() -> Iterator[Field]:
        for item in record_fields(shapes):
            if item.name == NEW_STACKS:
                continue
            entry = shapes.entry(item.array, item.of)
            yield Field(item.name, (records + item.has_bootstrap, columns, *entry.shape), entry.dtype, record)
        yield Field(CUT, (records, columns), "bool", record)
        for name, array in shapes.state.items():
            entry = shapes.entry(array)
            yield Field(STATE + name, (columns, *entry.shape), entry.dtype, column)
        yield Field(SLOT, (columns,), "int64", column)
        yield Field(GENERATION, (columns,), "int64", column)
        yield Field(PROBABILITY, (columns,), "float64", column)
        yield from extra

    return Layout.of(fields())


def draws_layout(columns: int) -> Layout:
    """A wish for windows, with priorities for the `columns` windows of an earlier message."""
    return Layout.of(
        Field(name, (columns,), dtype, (Axis.COLUMN,))
        for name, dtype in ((SLOT, "int64"), (GENERATION, "int64"), (PRIORITY, "float32"))
    )
