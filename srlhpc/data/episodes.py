"""Sequences of one policy behind each other (data/episode_format.py), and any windows of their records.

Letters: S sequences, M rows of all of them together, T records of a window, N windows, n frames of a stack.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.layout import Array
from srlhpc.environment import ArraySpec, Kind
from srlhpc.errors import UserError

Indices = NDArray[np.int64]
_NO_RECORD = ("rewards", "terminated", "truncated")
"""Fields that are zero in records that are none."""


class Entries(Protocol):
    """An array in memory, or in a file that slices are read from."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __getitem__(self, places: slice, /) -> Array: ...


@dataclass(frozen=True)
class EpisodeField:
    """One field of the records."""

    entries: Entries
    """`[M, ...]`, of stacks `[M + S (n - 1), ...]`."""
    has_last: bool = False
    """Whether windows have an entry of it behind their last record, as of observations."""
    frames: int = 1
    """n."""

    @property
    def array(self) -> ArraySpec:
        """Shape and dtype for one record; stacks whole."""
        entry = self.entries.shape[1:]
        return ArraySpec(entry if self.frames == 1 else (self.frames, *entry), self.entries.dtype.name)


class Episodes:
    """The sequences of one policy.

    Args:
        where: what messages call it.
        kind: what its agents see and do; names of agents may be unknown.
        fields: by name, as in data/blocks.py.
        offsets: int64 `[S + 1]`: where sequences begin, and M.
        agents: int64 `[S]`: place of the agent in its kind.
        episodes: int64 `[S]`: number of the environment's episode.
        returns: float64 `[S]`: the agent's return of that episode; NaN where it is unknown.
    """

    def __init__(
        self,
        where: str,
        kind: Kind,
        fields: Mapping[str, EpisodeField],
        offsets: Indices,
        agents: Indices,
        episodes: Indices,
        returns: NDArray[np.float64],
    ) -> None:
        self.where, self.kind, self.fields = where, kind, dict(fields)
        self.offsets, self.agents, self.episodes, self.returns = offsets, agents, episodes, returns

    @property
    def num_sequences(self) -> int:
        """S."""
        return len(self.agents)

    @property
    def num_episodes(self) -> int:
        """Episodes of the environment."""
        return len(np.unique(self.episodes))

    @property
    def num_rows(self) -> int:
        """M."""
        return int(self.offsets[-1])

    @property
    def num_records(self) -> int:
        """Records, last observations not counted."""
        return self.num_rows - self.num_sequences

    @property
    def size_bytes(self) -> int:
        """Bytes of all arrays in memory."""
        return sum(int(np.prod(f.entries.shape)) * f.entries.dtype.itemsize for f in self.fields.values())

    def in_memory(self) -> Episodes:
        """The same with all arrays in memory, `size_bytes` of it."""
        fields = {name: dataclasses.replace(f, entries=f.entries[:]) for name, f in self.fields.items()}
        return Episodes(self.where, self.kind, fields, self.offsets, self.agents, self.episodes, self.returns)

    def require(self, kind: Kind) -> None:
        """Refuses agents that see or do something else.

        Raises:
            UserError: with the name of what differs, and both shapes.
        """
        if differs := _difference(self.kind, kind):
            raise UserError(
                f"{self.where} does not fit the environment: {differs}; take one of the same environment, with the "
                "same settings and wrappers"
            )

    def windows(self, starts: Indices, records: int, lengths: Indices | None = None) -> dict[str, Array]:
        """T records from each of some rows on, and what is seen after them.

        Windows cross the ends of sequences as fragments do those of episodes: the record after an end is a sequence's
        last row, which is not valid; then the next sequence begins, after the last one the first.

        Args:
            starts: int64 `[N]`: rows.
            records: T.
            lengths: int64 `[N]`, 1 to T: how many of the records count. The last of them is `truncated` unless its
                sequence ends there, so that sums bootstrap from the observation that follows; later records are not
                valid and repeat that observation. None: all.

        Returns:
            Fields by name, `[T, N, ...]`, those with `has_last` `[T + 1, N, ...]`, stacks whole; and bool `first`
            `[T + 1, N]` and `valid` `[T, N]`.

        Raises:
            UserError: the file is damaged.
        """
        steps = np.arange(records + 1)[:, None]
        rows = (starts + (steps if lengths is None else np.minimum(steps, lengths))) % self.num_rows
        sequences = np.searchsorted(self.offsets, rows, side="right") - 1
        valid = (rows + 1 < self.offsets[sequences + 1])[:-1]
        found = {"first": rows == self.offsets[sequences], "valid": valid}
        for name, f in self.fields.items():
            end = records + f.has_last
            found[name] = _gathered(f, rows[:end], sequences[:end])
        if lengths is not None:
            self._cut(found, lengths)
        return found

    def _cut(self, found: Mapping[str, Array], lengths: Indices) -> None:
        valid = found["valid"]
        beyond = np.arange(len(valid))[:, None] >= lengths
        valid[beyond] = False
        for name in _NO_RECORD:
            found[name][beyond] = 0
        columns = np.flatnonzero(lengths < len(valid))
        last = lengths[columns] - 1, columns
        found["truncated"][last] |= valid[last] & ~found["terminated"][last]


def joined(parts: Sequence[Episodes]) -> Episodes:
    """The sequences of several one behind the other, in memory, with the fields that all have.

    Args:
        parts: of one kind of agents, in memory.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    names = [name for name in first.fields if all(name in part.fields for part in parts)]
    fields = {
        name: dataclasses.replace(
            first.fields[name], entries=np.concatenate([part.fields[name].entries[:] for part in parts])
        )
        for name in names
    }
    starts = np.cumsum([0, *(part.num_rows for part in parts)])
    offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts, strict=False)]
    episodes, number = [], 0
    for part in parts:
        episodes.append(part.episodes + number)
        number += int(part.episodes.max(initial=-1)) + 1
    return Episodes(
        ", ".join(part.where for part in parts),
        first.kind,
        fields,
        np.concatenate([*offsets, starts[-1:]]),
        np.concatenate([part.agents for part in parts]),
        np.concatenate(episodes),
        np.concatenate([part.returns for part in parts]),
    )


def _gathered(f: EpisodeField, rows: Indices, sequences: Indices) -> Array:
    if f.frames == 1:
        return _taken(f.entries, rows)
    # Before row r of sequence i lie the older frames of i + 1 sequences, the last ones of which are its own.
    oldest = rows + sequences * (f.frames - 1)
    return _taken(f.entries, oldest[..., None] + np.arange(f.frames))


def _taken(entries: Entries, places: Indices) -> Array:
    """Some entries, `[*places.shape, ...]`; from a file each once, neighbours together."""
    if isinstance(entries, np.ndarray):
        return entries.take(places, axis=0)
    wanted, place = np.unique(places, return_inverse=True)
    borders = np.flatnonzero(np.diff(wanted) > 1) + 1
    read = [entries[int(run[0]) : int(run[-1]) + 1] for run in np.split(wanted, borders)]
    return np.concatenate(read).take(place.reshape(places.shape), axis=0)


def _difference(found: Kind, wanted: Kind) -> str:
    """The first thing that kinds of agents see or do differently, with both; else empty."""
    names = {**found.observations, **wanted.observations}
    for name in names:
        there, here = found.observations.get(name), wanted.observations.get(name)
        if there != here:
            return f"observation '{name}' is {_shown(there)} there and {_shown(here)} here"
    if found.actions != wanted.actions:
        return f"actions are {_words(found)} there and {_words(wanted)} here"
    if found.has_action_masks != wanted.has_action_masks:
        return f"actions have {_masks(found)} there and {_masks(wanted)} here"
    return ""


def _shown(array: ArraySpec | None) -> str:
    return "missing" if array is None else f"{list(array.shape)} {array.dtype}"


def _words(kind: Kind) -> str:
    """`discrete (choices 3)`."""
    (name, value) = next(item for item in vars(kind.actions).items() if item[0] != "kind")
    return f"{kind.actions.kind} ({name} {value})"


def _masks(kind: Kind) -> str:
    return "masks" if kind.has_action_masks else "no masks"
