"""The form of a recording: a file of whole episodes in HDF5 (docs/recording.md), and which fields of records it holds.

A *sequence* is what one agent went through from its `first` to its end: R records, and a row more for its last
observation. All sequences of a policy lie one behind the other, in arrays with one entry a row, as the records of a
column that never stops: what the environment contract calls the invalid record after an end is a sequence's last row.

Letters: S sequences of a policy, M rows of all of them together, n frames of a stack.

| in `policies/NAME` | shape |
|---|---|
| `offsets` | `[S + 1]` int64: sequence i has the rows from `offsets[i]` to before `offsets[i + 1]` |
| `agent`, `episode` | `[S]` int64: place in the agents of the policy's kind; number of the environment's episode |
| `return` | `[S]` float64: the agent's return of that whole episode, as the environment told it |
| `records/FIELD` | `[M, ...]`: a field of records (data/blocks.py) |
| the same, a stack of n frames | `[M + S (n - 1), ...]`: every frame once, and n - 1 older ones before a sequence's |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from srlhpc.data.blocks import NEW_STACKS, PolicyShapes, record_fields
from srlhpc.specs.contracts import RecordField

FORMAT = "recording of srlhpc"
FORMAT_VERSION = 1
POLICIES = "policies"
RECORDS = "records"
OFFSETS = "offsets"
AGENT = "agent"
EPISODE = "episode"
RETURN = "return"
HAS_LAST = "has_last"
"""Attribute of a field: whether its entry in a sequence's last row says something, as of observations; else it is 0."""

FOLLOWING = ("first", "valid", "alive", "versions", NEW_STACKS)
"""Fields of records that follow from where sequences begin and end, and from what is said of the whole file."""


def recorded_fields(shapes: PolicyShapes) -> tuple[RecordField, ...]:
    """The fields of a policy's records that a recording holds."""
    return tuple(field for field in record_fields(shapes) if field.name not in FOLLOWING)


def row_type(fields: Iterable[RecordField]) -> np.dtype[Any]:
    """A structured type with one entry of every field; of a stack its newest frame."""
    return np.dtype([(field.name, field.entry.dtype, field.entry.shape) for field in fields], align=True)
