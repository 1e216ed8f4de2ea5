"""Watching one attempt: which ranks are up, which are lost, which limit has passed. The same under mpiexec and srun."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from srlhpc.data.atomic import read_json
from srlhpc.data.forgiving import FileSystemLostError, Forgiving
from srlhpc.errors import counted
from srlhpc.launch.rank_script import LabelledRank
from srlhpc.runs.failures import RankEnd, read_ends
from srlhpc.runs.lease import Lease, in_use
from srlhpc.runs.outcome import Outcome, is_removed, removed
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.progress import ProgressLine, progress_text
from srlhpc.specs.patience import LAST_CHECKPOINT_SECONDS, START_SECONDS

_MISSING_SHOWN = 10


class WatchedRank(LabelledRank, Protocol):
    """A rank of the plan, and whether the others go on without it."""

    @property
    def is_essential(self) -> bool: ...


@dataclass(frozen=True)
class Limits:
    """How long the foreman waits for what, in seconds."""

    start: float = START_SECONDS
    """Time for the coordinator to hear from all ranks."""
    last_checkpoint: float = LAST_CHECKPOINT_SECONDS
    """Time for the coordinator to write the last checkpoint, if it cannot at once."""
    lost: float = 3.0
    """Time for the coordinator to end a step that lost an essential rank."""
    leave: float = 30.0
    """Time for the last ranks to leave once the outcome is written."""
    renew: float = 10.0
    """Time between two renewals of the lease."""
    poll: float = 0.1
    """Time between two looks."""


class AttemptMonitor:
    """Watches the ranks of one attempt and the program that started them.

    Args:
        paths: the run.
        attempt: the attempt.
        lease: of the run, taken; it is renewed.
        ranks: all ranks of the plan.
        progress: where progress and losses are reported.
        limits: how long to wait.
    """

    def __init__(
        self,
        paths: RunPaths,
        attempt: AttemptPaths,
        lease: Lease,
        ranks: Sequence[WatchedRank],
        progress: ProgressLine,
        limits: Limits,
    ) -> None:
        self._paths, self._attempt, self._lease = paths, attempt, lease
        self._ranks = {rank.rank: rank for rank in ranks}
        self._progress, self._limits = progress, limits
        self._looks = Forgiving()
        self._said_lost: set[int] = set()
        self._last_status: dict[str, Any] = {}
        self._status_file: tuple[int, ...] | None = None
        self._first_updates: int | None = None
        self.was_up = False
        """Whether all ranks have reported."""

    @property
    def trains(self) -> bool:
        """Whether an update has come since the coordinator's first word."""
        return self._first_updates is not None and self._last_status.get("updates", 0) > self._first_updates

    def until_gone(self, launcher: subprocess.Popen[bytes], overdue: Callable[[], Outcome | None]) -> Outcome | None:
        """Returns when all ranks are gone or must go; then says why they must.

        Args:
            launcher: ends when all ranks have.
            overdue: asked at every look; its outcome ends the wait.
        """
        try:
            return self._until_gone(launcher, overdue)
        except FileSystemLostError as error:
            return Outcome("failed", "file_system", str(error))

    def _until_gone(self, launcher: subprocess.Popen[bytes], overdue: Callable[[], Outcome | None]) -> Outcome | None:
        clock = Deadlines(self._limits)
        ends: dict[int, RankEnd] = {}
        while launcher.poll() is None:
            if (forced := overdue()) is not None:
                return forced
            ends = read_ends(self._attempt, ends, self._looks)
            if len(ends) == len(self._ranks):
                # Their launcher ends by itself then, unless something holds it.
                clock.start("gone", 2.0)
            self.was_up = self._look_at_status(ends) or self.was_up
            self._check_losses(ends, clock)
            if self._looks.exists(self._attempt.outcome):
                clock.start("leave", self._limits.leave)
            if not self.was_up and clock.passed("start"):
                return self._late(ends)
            if any(clock.passed(name) for name in ("gone", "lost", "leave")):
                return None
            if (gone := self._not_ours(clock)) is not None:
                return gone
            time.sleep(self._limits.poll)
        return None

    def _not_ours(self, clock: Deadlines) -> Outcome | None:
        """Renews the lease when it is due; why the run is no longer this foreman's, if it is not."""
        if not clock.passed("renew"):
            return None
        clock.restart("renew", self._limits.renew)
        if not self._looks.exists(self._attempt.attempt) and is_removed(self._attempt):
            return removed(self._paths)
        holder = self._lease.renew()
        return None if holder is None else Outcome("failed", "lease", f"{in_use(self._paths.lease, holder)}")

    def _check_losses(self, ends: dict[int, RankEnd], clock: Deadlines) -> None:
        for end in ends.values():
            if end.is_clean or end.rank in self._said_lost:
                continue
            self._said_lost.add(end.rank)
            lost = self._ranks[end.rank]
            # Before all are up, the others wait for it inside MPI.
            others_go_on = self.was_up and not lost.is_essential
            if not self._looks.exists(self._attempt.outcome):
                self._progress.say(f"{lost.label} (rank {end.rank}) {self._why(end, others_go_on)}")
            if not others_go_on:
                # Nobody ends the step for a dead coordinator.
                clock.start("lost", self._limits.lost if end.rank else 0.0)
        # One that dies while the last ones come may be found dead before the status says that all are there.
        if self.was_up and not any(self._ranks[rank].is_essential for rank in self._said_lost) and clock.stop("lost"):
            self._progress.say("all other ranks are up and continue")

    def _why(self, end: RankEnd, others_go_on: bool) -> str:
        written = read_json(self._attempt.failure(end.rank))
        if written is not None:
            return f"failed: {written.get('message', '')}"
        return f"{end.text}; the other ranks continue" if others_go_on else end.text

    def _look_at_status(self, ends: Mapping[int, RankEnd]) -> bool:
        """Shows progress; returns whether all ranks have reported at least once or ended."""
        status = self._status()
        is_up = bool(status) and (status.get("phase") != "starting" or not self._missing(status, ends))
        text = progress_text(status) if is_up else f"starting {counted(len(self._ranks), 'rank')}"
        self._progress.show(text, time.monotonic())
        return is_up

    def _status(self) -> dict[str, Any]:
        """Status of this attempt by its coordinator; empty if it has written none yet."""
        facts = self._looks.look(self._paths.status, self._paths.status.stat, None)
        if facts is None:
            return self._last_status
        # It is replaced once a second and holds a paragraph on every rank.
        file = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        if file != self._status_file:
            status = read_json(self._paths.status) or {}
            self._last_status = status if status.get("attempt") == self._attempt.number else {}
            self._status_file = file
            if self._last_status and self._first_updates is None:
                self._first_updates = int(self._last_status.get("updates", 0))
        return self._last_status

    def _missing(self, status: Mapping[str, Any], ends: Mapping[int, RankEnd]) -> list[str]:
        """Ranks that have neither reported nor ended. A coordinator that writes has come."""
        come = {entry.get("rank") for entry in status.get("ranks") or [] if entry.get("alive")} | set(ends)
        come |= {0} if status else set()
        return [f"{rank.label} (rank {rank.rank})" for rank in self._ranks.values() if rank.rank not in come]

    def _late(self, ends: Mapping[int, RankEnd]) -> Outcome:
        """Who did not come in time."""
        missing = self._missing(self._status(), ends)
        more = f" and {len(missing) - _MISSING_SHOWN} more" if len(missing) > _MISSING_SHOWN else ""
        known = list(ends.values())[:_MISSING_SHOWN]
        ended = "".join(f"; {self._ranks[end.rank].label} {end.text}" for end in known)
        return Outcome(
            "failed",
            "start",
            f"not all ranks were up after {self._limits.start:.0f} s; "
            f"missing: {', '.join(missing[:_MISSING_SHOWN])}{more}{ended}. Their logs are in {self._attempt.logs}",
        )


class Deadlines:
    """Named times at which a wait ends."""

    def __init__(self, limits: Limits) -> None:
        self._times: dict[str, float] = {}
        self.start("start", limits.start)
        self.start("renew", limits.renew)

    def start(self, name: str, seconds: float) -> None:
        """Sets a deadline, unless it is set already."""
        self._times.setdefault(name, time.monotonic() + seconds)

    def restart(self, name: str, seconds: float) -> None:
        self._times[name] = time.monotonic() + seconds

    def stop(self, name: str) -> bool:
        """Takes a deadline back; whether it was set."""
        return self._times.pop(name, None) is not None

    def passed(self, name: str) -> bool:
        return name in self._times and time.monotonic() > self._times[name]
