"""Fixed bytes for named arrays: computed once from shapes, equal on every rank, viewed without copies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.environment import Stack

Array = NDArray[Any]

ALIGNMENT_BYTES = 64
HEADER_ITEMS = 16
HEADER_BYTES = HEADER_ITEMS * 8


class Axis(Enum):
    """What an axis of an array counts."""

    RECORD = "record"
    """Time within a fragment."""
    CHUNK = "chunk"
    ENVIRONMENT = "environment"
    """Environments of a group."""
    AGENT = "agent"
    COLUMN = "column"
    """Windows side by side, each of one column."""


@dataclass(frozen=True)
class Field:
    """One array of a message."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[Axis, ...] = ()
    """What the leading axes count; the others belong to one value."""
    stack: Stack | None = None
    """Set where the entries of the first axis are frames of stacks (data/stacks.py)."""

    @property
    def size_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Layout:
    """A header of sixteen int64 and then the fields, each on a 64-byte border."""

    fields: tuple[Field, ...]

    @classmethod
    def of(cls, fields: Iterable[Field]) -> Layout:
        return cls(tuple(fields))

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Byte offset of each field."""
        offsets, end = [], HEADER_BYTES
        for item in self.fields:
            offsets.append(end)
            end += -(-item.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return tuple(offsets)

    @cached_property
    def size_bytes(self) -> int:
        """Bytes of a whole message."""
        if not self.fields:
            return HEADER_BYTES
        return self.offsets[-1] + -(-self.fields[-1].size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES

    def size(self, axis: Axis) -> int:
        """Length of an axis, the same in all fields that have it but for records with and without a bootstrap."""
        return next(f.shape[f.axes.index(axis)] for f in self.fields if axis in f.axes)

    @cached_property
    def digest(self) -> str:
        """Equal exactly where the bytes mean the same."""
        # dtype.str has the byte order, so a node of the other order is found out.
        text = ";".join(f"{f.name}{f.shape}{np.dtype(f.dtype).str}{f.stack or ''}" for f in self.fields)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def allocate(self) -> NDArray[np.uint8]:
        """A zeroed buffer for one message, on a 64-byte border."""
        # numpy's own border is smaller; 64 bytes more always have one of 64 among them.
        raw = np.zeros(self.size_bytes + ALIGNMENT_BYTES, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT_BYTES
        return raw[start : start + self.size_bytes]

    def header(self, buffer: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The sixteen numbers before the fields."""
        return buffer[:HEADER_BYTES].view(np.int64)

    def views(self, buffer: NDArray[np.uint8]) -> dict[str, Array]:
        """Field name to its array inside `buffer`; writing there writes the message."""
        return {
            item.name: buffer[start : start + item.size_bytes].view(item.dtype).reshape(item.shape)
            for item, start in zip(self.fields, self.offsets, strict=True)
        }


def prefixed(views: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """The views whose name starts with `prefix`, without it: `prefixed(views, "obs.")`."""
    return {name[len(prefix) :]: view for name, view in views.items() if name.startswith(prefix)}
