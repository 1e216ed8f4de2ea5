"""Which ranks live: reports, silence, and what wrappers and failing ranks left in the attempt's folder."""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srlhpc.data.forgiving import Forgiving

FEEL_AFTER_SECONDS = 15.0
"""Seconds of silence after which a rank's pulse is looked for."""
FEEL_SECONDS = 5.0
"""Seconds between two looks for a pulse."""
LONGEST_WORK_SECONDS = 3600.0
"""Longest piece of work without a report, with or without a pulse: an endless loop computes, too."""


@dataclass
class RankRecord:
    """What the coordinator knows of one rank."""

    rank: int
    label: str
    role: str
    """The role that its label names."""
    role_names: Mapping[str, str]
    """Label to name, of all its roles."""
    is_essential: bool
    """Whether its death ends the step; else the others go on."""
    one_must_live: bool
    """Whether the step ends when the last rank of its role is dead."""
    address: int
    """Address of the role that reports for it."""
    silence_limit_seconds: float
    heard_at: float
    host: str = ""
    pid: int = 0
    reported: bool = False
    done: bool = False
    exiting: bool = False
    dead: bool = False
    cause: str = ""
    counters: dict[str, dict[str, float]] | None = None
    idle_seconds: float = 0.0
    """How long nothing of its work had moved at its last report."""
    waits: dict[str, str] = field(default_factory=dict)
    """Role label to what it waits for."""
    worked_at: float = 0.0
    """When it last showed that it works: by a report, or by a pulse where it cannot report."""
    pulse: str = ""
    """Content of the file of its pulse when it was last read."""
    felt_at: float = 0.0
    """When the file of its pulse was last read."""

    @property
    def is_here(self) -> bool:
        """Whether it is this very process, a serial run, which reports news only and is never taken for dead."""
        return math.isinf(self.silence_limit_seconds)

    def take(self, report: Mapping[str, Any], now: float) -> None:
        """Notes what its newest report says of the rank itself."""
        self.heard_at, self.reported = now, True
        self.host, self.pid = report["host"], report["pid"]
        self.counters = report["counters"]
        self.done = report["done"]
        self.idle_seconds, self.waits = report["idle_seconds"], report["waits"]


@dataclass(frozen=True)
class RankFailure:
    """A rank that failed, and whether the run can go on without it."""

    record: RankRecord
    message: str
    kind: str
    """`killed`, `exit`, `silence`, or what the rank itself wrote: `environment`, `diverged`, `exception`, `user`."""


class Liveness:
    """Finds dead ranks. Lists `exits/` and `failures/`, which need no message from the dying.

    A look costs two listings, whatever the number of ranks; only files of ranks that are not known to be dead are read.

    Args:
        records: of all ranks but the coordinator's.
        exits: where wrappers write down how ranks ended.
        failures: where ranks write down why they fail.
        looks: forgives a file system that fails in passing; silence is found out all the same.
        pulses: where ranks that are inside a long piece of work show that they compute (ranks/pulse.py).
    """

    def __init__(
        self,
        records: Sequence[RankRecord],
        exits: Path,
        failures: Path,
        looks: Forgiving | None = None,
        pulses: Path | None = None,
    ) -> None:
        self.records = list(records)
        self._exits, self._failures, self._pulses = exits, failures, pulses
        self._looks = looks or Forgiving()

    @property
    def planned(self) -> int:
        """All ranks, the coordinator's included."""
        return len({0} | {record.rank for record in self.records})

    @property
    def alive(self) -> int:
        """Ranks that are up and have not ended, the coordinator's included."""
        return len({0} | {record.rank for record in self.records if record.reported and not record.dead})

    def dead_ranks(self) -> list[int]:
        return [record.rank for record in self.records if record.dead]

    def discount(self, seconds: float) -> None:
        """Forgives silence of so long, in which nobody listened."""
        for record in self.records:
            record.heard_at += seconds
            record.worked_at += seconds

    def look(self, now: float) -> list[RankFailure]:
        """Ranks found dead since the last look."""
        found = []
        names = self._looks.names(self._exits) | self._looks.names(self._failures)
        for record in self.records:
            if record.dead or record.exiting:
                continue
            failure = None
            if names & {str(record.rank), _failure_name(record)}:
                # What a rank has written tells more than its exit status, and may be younger than the listing.
                failure = self._written(record) or self._exited(record)
            failure = failure or self._silent(record, now)
            if failure is not None:
                record.dead, record.cause = True, failure.message
                found.append(failure)
        return found

    def _written(self, record: RankRecord) -> RankFailure | None:
        try:
            content: dict[str, Any] = json.loads((self._failures / _failure_name(record)).read_text())
        except (OSError, ValueError):
            return None
        return RankFailure(record, str(content.get("message", "")), str(content.get("kind", "exception")))

    def _exited(self, record: RankRecord) -> RankFailure | None:
        try:
            code = int((self._exits / str(record.rank)).read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        if code > 128:
            number = code - 128
            name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
            return RankFailure(record, f"was ended by {name}", "killed")
        return RankFailure(record, f"ended with exit code {code} before the run did", "exit")

    def _silent(self, record: RankRecord, now: float) -> RankFailure | None:
        # Before its first report the foreman's time for the start counts.
        if not record.reported:
            return None
        silent = now - record.heard_at
        if silent > FEEL_AFTER_SECONDS:
            self._feel(record, now)
        quiet = min(silent, now - record.worked_at)
        limit = record.silence_limit_seconds
        if quiet <= limit and silent <= max(limit, LONGEST_WORK_SECONDS):
            return None
        return RankFailure(record, f"has been silent for {silent:.0f} s", "silence")

    def _feel(self, record: RankRecord, now: float) -> None:
        """Reads the rank's pulse, if that is due."""
        if self._pulses is None or now - record.felt_at < FEEL_SECONDS:
            return
        record.felt_at = now
        try:
            pulse = (self._pulses / str(record.rank)).read_text()
        except OSError:
            return
        if pulse != record.pulse:
            record.pulse, record.worked_at = pulse, now


def _failure_name(record: RankRecord) -> str:
    return f"rank-{record.rank:05d}.json"
