"""The foreman: runs one attempt in the foreground, watches it, ends it, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from srlhpc.data.atomic import read_json
from srlhpc.launch.ending import Outcome, cause, last_checkpoint, summary, write_end
from srlhpc.launch.failures import RankEnd, read_ends
from srlhpc.launch.interruption import Signals
from srlhpc.launch.lease import Lease
from srlhpc.launch.local import LabelledRank, rank_program, start_ranks
from srlhpc.launch.processes import kill_processes_of
from srlhpc.launch.progress_line import ProgressLine, progress_text
from srlhpc.launch.rundir import AttemptPaths, RunPaths
from srlhpc.launch.shared_memory import remove_leftovers

_EXPENDABLE = ("actor", "evaluator")
"""Roles whose death the others survive."""


@dataclass(frozen=True)
class Limits:
    """How long the foreman waits for what, in seconds."""

    start: float = 300.0
    """For the coordinator to hear from all ranks."""
    lost: float = 3.0
    """For the coordinator to end a step that lost a rank which matters."""
    leave: float = 30.0
    """For the last ranks to leave once the outcome is written."""
    renew: float = 10.0
    """Between two renewals of the lease."""
    poll: float = 0.1
    """Between two looks."""


class Foreman:
    """One attempt of a run, under MPI on this machine.

    Args:
        paths: the run.
        attempt: its new attempt, folders and files made.
        lease: of the run, taken.
        ranks: all ranks of the plan.
        program: command of a rank; None for `srlhpc.launch.rank`.
        out: where progress and the summary go.
        limits: how long to wait.
    """

    def __init__(
        self,
        paths: RunPaths,
        attempt: AttemptPaths,
        lease: Lease,
        ranks: Sequence[LabelledRank],
        *,
        program: Sequence[str] | None = None,
        out: TextIO | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._paths = paths
        self._attempt = attempt
        self._ranks = {rank.rank: rank for rank in ranks}
        self._program = rank_program(attempt) if program is None else program
        self._limits = limits or Limits()
        self._progress = ProgressLine(out or sys.stderr)
        self._lease = lease
        self._signals = Signals(attempt, raises=False)
        self._said_lost: set[int] = set()

    def run(self) -> Outcome:
        """Starts the ranks and stays until all are gone.

        Raises:
            UserError: there is no mpiexec.
        """
        with self._signals.caught():
            outcome = self._run_ranks()
        self._progress.say(summary(self._paths, outcome))
        return outcome

    def _run_ranks(self) -> Outcome:
        started = time.time()
        mpiexec = start_ranks(self._attempt, list(self._ranks.values()), self._program)
        try:
            forced = self._watch(mpiexec)
        except BaseException as error:
            write_end(self._attempt, Outcome("failed", "foreman", f"the foreman failed: {error!r}"), started)
            raise
        finally:
            # Nothing may stay, whatever happened above.
            mpiexec.kill()
            mpiexec.wait()
            remaining = kill_processes_of(self._attempt.folder)
            remove_leftovers(self._attempt)
        if remaining:
            self._progress.say(f"processes {remaining} cannot be killed (they wait for the kernel)")
        outcome = Outcome.written(self._attempt) or forced or self._cause(mpiexec)
        write_end(self._attempt, outcome, started)
        return outcome

    def _watch(self, mpiexec: subprocess.Popen[bytes]) -> Outcome | None:
        """Returns when all ranks are gone or must go; then says why they must."""
        clock = Deadlines(self._limits)
        is_up = False
        while mpiexec.poll() is None:
            if self._signals.count > 1:
                return Outcome("interrupted", "interrupt", f"ended at once; {last_checkpoint(self._paths)}")
            ends = read_ends(self._attempt)
            if len(ends) == len(self._ranks):
                clock.start("gone", 2.0)
            self._check_losses(ends, clock)
            if self._attempt.outcome.exists():
                clock.start("leave", self._limits.leave)
            is_up = self._look_at_status(ends) or is_up
            if not is_up and clock.passed("start"):
                return self._late(ends)
            if any(clock.passed(name) for name in ("gone", "lost", "leave")):
                return None
            if clock.passed("renew"):
                self._lease.renew()
                clock.restart("renew", self._limits.renew)
            time.sleep(self._limits.poll)
        return None

    def _check_losses(self, ends: dict[int, RankEnd], clock: Deadlines) -> None:
        for end in ends.values():
            if end.is_clean or end.rank in self._said_lost:
                continue
            self._said_lost.add(end.rank)
            label = self._ranks[end.rank].label
            expendable = label.startswith(_EXPENDABLE)
            if not self._attempt.outcome.exists():
                self._progress.say(f"{label} (rank {end.rank}) {self._why(end, expendable)}")
            if not expendable:
                clock.start("lost", self._limits.lost)

    def _why(self, end: RankEnd, expendable: bool) -> str:
        written = read_json(self._attempt.failure(end.rank))
        if written is not None:
            return f"failed: {written.get('message', '')}"
        return f"{end.text}; the others go on" if expendable else end.text

    def _look_at_status(self, ends: Mapping[int, RankEnd]) -> bool:
        """Shows progress; returns whether all ranks have reported at least once or ended."""
        status = self._status()
        is_up = bool(status) and (status.get("phase") != "starting" or not self._missing(status, ends))
        text = progress_text(status) if is_up else f"starting {len(self._ranks)} ranks"
        self._progress.show(text, time.monotonic())
        return is_up

    def _status(self) -> dict[str, Any]:
        """What the coordinator of this attempt says; empty if it has said nothing yet."""
        status = read_json(self._paths.status) or {}
        return status if status.get("attempt") == self._attempt.number else {}

    def _missing(self, status: Mapping[str, Any], ends: Mapping[int, RankEnd]) -> list[str]:
        """Ranks that have neither reported nor ended. A coordinator that writes has come."""
        come = {entry.get("rank") for entry in status.get("ranks") or [] if entry.get("alive")} | set(ends)
        come |= {0} if status else set()
        return [f"{rank.label} (rank {rank.rank})" for rank in self._ranks.values() if rank.rank not in come]

    def _late(self, ends: Mapping[int, RankEnd]) -> Outcome:
        """Who did not come in time."""
        ended = "".join(f"; {self._ranks[end.rank].label} {end.text}" for end in ends.values())
        return Outcome(
            "failed",
            "start",
            f"not all ranks were up after {self._limits.start:.0f} s; "
            f"missing: {', '.join(self._missing(self._status(), ends))}{ended}. Their logs are in {self._attempt.logs}",
        )

    def _cause(self, mpiexec: subprocess.Popen[bytes]) -> Outcome:
        return cause(self._attempt, f"mpiexec ended with {mpiexec.returncode}; see {self._attempt.logs}/mpiexec.log")


class Deadlines:
    """Named times after which patience ends."""

    def __init__(self, limits: Limits) -> None:
        self._times: dict[str, float] = {}
        self.start("start", limits.start)
        self.start("renew", limits.renew)

    def start(self, name: str, seconds: float) -> None:
        """Sets a deadline, unless it is set already."""
        self._times.setdefault(name, time.monotonic() + seconds)

    def restart(self, name: str, seconds: float) -> None:
        self._times[name] = time.monotonic() + seconds

    def passed(self, name: str) -> bool:
        return name in self._times and time.monotonic() > self._times[name]
