"""Turns what policies see, do and get in a round of episodes into sequences of a recording. Free of torch.

Letters: E environments, A agents of a policy in one environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from srlhpc.data.episode_format import row_type
from srlhpc.data.episode_writer import RecordedSequence
from srlhpc.data.row_spool import RowSpool
from srlhpc.environment import Array, BoolArray, Episode, Kind, KindStep, Step
from srlhpc.roles.acting.record_check import RecordCheck
from srlhpc.roles.acting.turns import Turns
from srlhpc.specs.contracts import RecordField

PIECE_BYTES = 1 << 20
"""Rows that are handed to the writer at once."""
_IN_MEMORY_BYTES = 1 << 26
"""Rows of open episodes of all policies together that are kept in memory."""


class Replied(Protocol):
    """What a policy answered: as a message of a policy server (data/blocks.py)."""

    @property
    def fields(self) -> Mapping[str, Array]: ...


class Writer(Protocol):
    """What takes whole sequences."""

    def add(self, policy: str, sequence: RecordedSequence) -> None: ...


@dataclass(frozen=True)
class RecordedSeat:
    """A policy that is recorded."""

    policy: str
    kind: Kind
    agents: tuple[int, ...]
    """Places in the kind's agent axis."""
    fields: tuple[RecordField, ...]
    """What `data.episode_format.recorded_fields` gives."""


class EpisodeRecorder:
    """Keeps the records of open episodes, and writes each episode when the environment ends it.

    Args:
        seats: the policies, in any number of kinds.
        num_environments: E.
        writer: of the recording.
        folder: for what does not fit into memory.
    """

    def __init__(self, seats: Sequence[RecordedSeat], num_environments: int, writer: Writer, folder: Path) -> None:
        columns = num_environments * sum(len(seat.agents) for seat in seats)
        in_memory = _IN_MEMORY_BYTES // columns
        self._seats = [_SeatRows(seat, num_environments, folder, in_memory) for seat in seats]
        kinds = {seat.kind.name: seat.kind for seat in seats}
        self._checks = [RecordCheck(kind) for kind in kinds.values() if not kind.takes_turns]
        self._turns = {name: Turns(kind, num_environments) for name, kind in kinds.items() if kind.takes_turns}
        self._writer = writer
        self._playing: BoolArray = np.zeros(num_environments, np.bool_)
        self._episode = 0

    def begin(self, step: Step) -> None:
        """Takes in the first step of new episodes.

        Raises:
            ValueError: a flag contradicts the contract of environments.
        """
        for check in self._checks:
            check.begin(step)
        for kind, turns in self._turns.items():
            turns.begin(step.kinds[kind])

    def see(self, step: Step, playing: BoolArray) -> None:
        """Takes in what the policies see before they act.

        Args:
            step: its arrays may be written over afterwards.
            playing: `[E]`: environments whose episode counts.

        Raises:
            OSError: rows cannot be kept.
        """
        self._playing = playing.copy()
        for rows in self._seats:
            rows.see(step.kinds[rows.seat.kind.name], self._playing)

    def finish(self, step: Step, replies: Mapping[str, Replied]) -> None:
        """Takes in what the policies did, by name, and what came of it; writes the episodes that ended.

        Raises:
            OSError: rows cannot be kept or written.
            ValueError: a flag contradicts the contract, or a stack of frames is none.
        """
        for check in self._checks:
            check(step)
        earned = {**step.kinds, **{kind: turns.follow(step.kinds[kind]) for kind, turns in self._turns.items()}}
        for rows in self._seats:
            rows.finish(earned[rows.seat.kind.name], replies[rows.seat.policy])
        for episode in step.episodes:
            if self._playing[episode.environment]:
                for rows in self._seats:
                    rows.write(episode, self._episode, self._writer)
                self._episode += 1

    def close(self) -> None:
        """Forgets open episodes."""
        for rows in self._seats:
            rows.close()


@dataclass
class _Column:
    """One agent of one environment: its sequences of the episode that is played."""

    spool: RowSpool
    rows: int = 0
    starts: list[int] = field(default_factory=list)
    """Where its sequences begin in the spool."""
    older: list[Mapping[str, Array]] = field(default_factory=list)
    """What lies before their first frames."""


class _SeatRows:
    """The open episodes of one policy."""

    def __init__(self, seat: RecordedSeat, num_environments: int, folder: Path, in_memory: int) -> None:
        self.seat = seat
        row = row_type(seat.fields)
        self._now: Array = np.zeros((num_environments, len(seat.agents)), row)
        """The last record of every column."""
        self._valid: BoolArray = np.zeros(self._now.shape, np.bool_)
        """Columns that play it: others are not recorded."""
        self._open: BoolArray = np.zeros(self._now.shape, np.bool_)
        """Columns whose last record is kept here alone: until the next one it gets what comes while others act."""
        self._last: Array = np.zeros((), row)
        self._columns = [[_Column(RowSpool(row, folder, in_memory)) for _ in seat.agents] for _ in self._now]
        self._stacks = {f.name: f for f in seat.fields if f.stack is not None}
        self._shown: dict[str, Array] = {}
        """Whole stacks before the action."""

    def _of(self, array: Array) -> Array:
        return array[:, self.seat.agents]

    def _seen(self, now: KindStep, f: RecordField) -> Array:
        """One entry of every column: of a stack its newest frame."""
        values = self._of(f.value(now))
        return values if f.stack is None else values[:, :, -1]

    def see(self, now: KindStep, playing: BoolArray) -> None:
        self._valid = acts = self._of(now.valid) & playing[:, None]
        self._append_whole(self._open & acts)
        for f in self.seat.fields:
            if f.written == "seen":
                self._now[f.name][acts] = self._seen(now, f)[acts]
        self._shown = {name: self._of(f.value(now)).copy() for name, f in self._stacks.items()}
        for place in np.argwhere(self._valid & self._of(now.first)).tolist():
            self._begin(*place)

    def _begin(self, env: int, agent: int) -> None:
        column = self._columns[env][agent]
        column.starts.append(column.rows)
        column.older.append({name: shown[env, agent, :-1].copy() for name, shown in self._shown.items()})

    def finish(self, now: KindStep, reply: Replied) -> None:
        acts, waits = self._valid, self._open & ~self._valid
        for f in self.seat.fields:
            if f.written == "replied":
                self._now[f.name][acts] = f.value(reply)[acts]
            elif f.written == "stepped":
                self._now[f.name][acts] = self._of(f.value(now))[acts]
        for name in ("rewards", "terminated", "truncated") if waits.any() else ():
            self._now[name][waits] += self._of(getattr(now, name))[waits]
        self._open |= acts
        self._check_stacks(now)
        ended = self._open & self._of(now.terminated | now.truncated)
        self._append_whole(ended)
        for env, agent in np.argwhere(ended).tolist():
            self._append_last(env, agent, now)

    def _append_whole(self, columns: BoolArray) -> None:
        """Appends the last record of some columns, which nothing changes any more."""
        for env, agent in np.argwhere(columns).tolist():
            self._append(env, agent, self._now[env, agent])
        self._open &= ~columns

    def _append(self, env: int, agent: int, row: Array) -> None:
        column = self._columns[env][agent]
        column.spool.append(row)
        column.rows += 1

    def _append_last(self, env: int, agent: int, now: KindStep) -> None:
        """A row for what is seen after the last record."""
        for f in self.seat.fields:
            if f.has_bootstrap:
                self._last[f.name] = self._seen(now, f)[env, agent]
        self._append(env, agent, self._last)

    def _check_stacks(self, now: KindStep) -> None:
        followed = self._valid & self._of(now.alive)
        for name, f in self._stacks.items():
            before, after = self._shown[name][:, :, 1:], self._of(f.value(now))[:, :, :-1]
            wrong = followed & (before != after).any(axis=tuple(range(2, before.ndim)))
            if wrong.any():
                env, agent = np.argwhere(wrong)[0].tolist()
                raise ValueError(
                    f"agent '{self.seat.kind.agents[self.seat.agents[agent]]}' of kind '{self.seat.kind.name}' in "
                    f"environment {env}: '{name}' is declared as a stack of frames, the newest last, and does not go "
                    "on with those of the record before; a recording holds each frame once, so stacks may begin anew "
                    "only where an episode begins: correct the spaces (`Kind.stacks`)"
                )

    def write(self, episode: Episode, number: int, writer: Writer) -> None:
        """Hands over what an environment's episode brought."""
        for agent, column in zip(self.seat.agents, self._columns[episode.environment], strict=True):
            total = episode.returns.get(self.seat.kind.agents[agent], float("nan"))
            stops = [*column.starts[1:], column.rows]
            for start, stop, older in zip(column.starts, stops, column.older, strict=False):
                rows = column.spool.pieces(start, stop, PIECE_BYTES)
                writer.add(self.seat.policy, RecordedSequence(agent, number, total, older, rows))
            column.spool.clear()
            column.rows = 0
            column.starts.clear()
            column.older.clear()

    def close(self) -> None:
        for row in self._columns:
            for column in row:
                column.spool.close()
