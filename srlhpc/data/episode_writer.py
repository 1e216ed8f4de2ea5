"""Writes recordings (data/episode_format.py): sequence by sequence, in memory that does not grow with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import h5py
import numpy as np

from srlhpc.data.atomic import naming
from srlhpc.data.checkpoint_entries import encoded
from srlhpc.data.episode_format import (
    AGENT,
    EPISODE,
    FORMAT,
    FORMAT_VERSION,
    HAS_LAST,
    OFFSETS,
    POLICIES,
    RECORDS,
    RETURN,
    row_type,
)
from srlhpc.data.full_disk import leave_room
from srlhpc.data.hdf5_sink import Hdf5Sink
from srlhpc.data.layout import Array
from srlhpc.data.row_spool import Rows
from srlhpc.environment import Spaces
from srlhpc.specs.contracts import RecordField

CHUNK_BYTES = 1 << 15
"""Numbers of a chunk, before it is compressed: as much is read for a window, at the least."""
_GATHERED_BYTES = 1 << 22
"""Rows that are written at once: a call of HDF5 costs more than a short episode."""
_LIGHTLY: Mapping[str, Any] = {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}

Attributes = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class RecordedSequence:
    """One agent's records of one episode, from its `first` to its end."""

    agent: int
    """Place among the agents of the policy's kind."""
    episode: int
    """Number of the environment's episode."""
    total: float
    """The agent's return of that episode; NaN if the environment told none."""
    older: Mapping[str, Array]
    """Field that is a stack to its frames before the first row's newest, `[n - 1, ...]`."""
    rows: Iterable[Rows]
    """R + 1 rows in pieces."""


@dataclass(frozen=True)
class RecordedPolicy:
    """What a recording holds of one policy."""

    kind: str
    """Name of its kind in the spaces."""
    fields: tuple[RecordField, ...]
    """What `recorded_fields` gives."""


class EpisodeWriter:
    """Writes one recording; use it in a `with` statement, whose end makes it whole.

    Args:
        file: open for reading and writing, empty; it stays the caller's.
        path: what errors call it; some room is left on its disk.
        spaces: of the environment.
        policies: by name.
        attributes: said of the whole file.
    """

    def __init__(
        self,
        file: BinaryIO,
        path: Path,
        spaces: Spaces,
        policies: Mapping[str, RecordedPolicy],
        attributes: Attributes,
    ) -> None:
        self._sink, self._path = Hdf5Sink(file), path
        # The newest form that all readers of today know. Arrays only grow, so few chunks of each have to be kept.
        self._h5 = h5py.File(self._sink, "w", libver=("v110", "v110"), rdcc_nbytes=4 * CHUNK_BYTES)
        self._h5.attrs.update(
            {"format": FORMAT, "format_version": FORMAT_VERSION, "spaces": json.dumps(spaces.to_json()), **attributes}
        )
        group = self._h5.create_group(POLICIES)
        self._parts = {name: _Part(group.create_group(name), policy) for name, policy in policies.items()}

    def add(self, policy: str, sequence: RecordedSequence) -> None:
        """Adds a sequence of a policy.

        Raises:
            OSError: the disk is full, say; it names the path. The writer is of no use any more.
        """
        part = self._parts[policy]
        part.begin(sequence)
        for rows in sequence.rows:
            part.gather(rows)
            if part.gathered_bytes >= _GATHERED_BYTES:
                with naming(self._path):
                    self._write(part)
        part.end()

    @property
    def records(self) -> int:
        """Records so far, of all policies."""
        return sum(part.records for part in self._parts.values())

    def _write(self, part: _Part) -> None:
        leave_room(self._path.absolute().parent, part.gathered_bytes)
        try:
            part.write()
        finally:
            # What HDF5 says of a file that was refused something is of no use.
            self._sink.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Completes the file.

        Raises:
            OSError: as `add`.
        """
        if error is not None:
            self._abandon()
            return
        with naming(self._path):
            try:
                for part in self._parts.values():
                    self._write(part)
                    part.write_ends()
            except BaseException:
                self._abandon()
                raise
            try:
                self._h5.close()
            finally:
                self._sink.check()

    def _abandon(self) -> None:
        # What is in the file is of no use, nor what HDF5 says of it.
        with suppress(Exception):
            self._h5.close()


class _Part:
    """One policy's group."""

    def __init__(self, group: h5py.Group, policy: RecordedPolicy) -> None:
        group.attrs["kind"] = policy.kind
        self._group, self._stacks = group, [field.name for field in policy.fields if field.stack is not None]
        records = group.create_group(RECORDS)
        row = row_type(policy.fields)
        self._datasets = {field.name: _dataset(records, field, row[field.name]) for field in policy.fields}
        self._gathered: dict[str, list[Array]] = {field.name: [] for field in policy.fields}
        self.gathered_bytes = 0
        self._rows = 0
        self._offsets = [0]
        self._agents: list[int] = []
        self._episodes: list[int] = []
        self._returns: list[float] = []

    @property
    def records(self) -> int:
        """A sequence's last row is none."""
        return self._rows - len(self._agents)

    def begin(self, sequence: RecordedSequence) -> None:
        for name in self._stacks:
            self._gathered[name].append(sequence.older[name])
        self._agents.append(sequence.agent)
        self._episodes.append(sequence.episode)
        self._returns.append(sequence.total)

    def gather(self, rows: Rows) -> None:
        for name, parts in self._gathered.items():
            parts.append(rows[name])
        self._rows += len(rows)
        self.gathered_bytes += rows.nbytes

    def end(self) -> None:
        self._offsets.append(self._rows)

    def write(self) -> None:
        for name, parts in self._gathered.items():
            if parts:
                _append(self._datasets[name], np.concatenate(parts))
                parts.clear()
        self.gathered_bytes = 0

    def write_ends(self) -> None:
        for name, values, dtype in (
            (OFFSETS, self._offsets, "int64"),
            (AGENT, self._agents, "int64"),
            (EPISODE, self._episodes, "int64"),
            (RETURN, self._returns, "float64"),
        ):
            self._group.create_dataset(name, data=np.array(values, dtype))


def _dataset(group: h5py.Group, field: RecordField, entry: np.dtype[Any]) -> h5py.Dataset:
    rows = max(1, CHUNK_BYTES // max(1, entry.itemsize))
    made = group.create_dataset(
        encoded(field.name),
        shape=(0, *entry.shape),
        # A chunk is at least 1 long, and not longer than an array can get.
        maxshape=(None, *(size or None for size in entry.shape)),
        chunks=(rows, *(size or 1 for size in entry.shape)),
        dtype=entry.base,
        **_LIGHTLY,
    )
    made.attrs[HAS_LAST] = field.has_bootstrap
    return made


def _append(dataset: h5py.Dataset, entries: Array) -> None:
    before = len(dataset)
    dataset.resize(before + len(entries), axis=0)
    dataset[before:] = entries
