"""The coordinator: hears every rank, decides when to checkpoint and stop, keeps the run directory.

starting --(all ranks reported)--> training --(limit, Ctrl-C, failed actor)--> stopping --(all done)--> ended
any --(an essential rank died, or no actor is left)--> failed: the step is aborted
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srlhpc.comm.channel import Inbox, Outbox
from srlhpc.comm.protocol import Command, read_text, write_text
from srlhpc.data import mailbox
from srlhpc.data.forgiving import Forgiving
from srlhpc.errors import counted
from srlhpc.roles.coordinating.checkpointing import Checkpointing
from srlhpc.roles.coordinating.journal import Journal
from srlhpc.roles.coordinating.live_timing import LiveTiming
from srlhpc.roles.coordinating.liveness import Liveness, RankFailure, RankRecord
from srlhpc.roles.coordinating.progress import Progress
from srlhpc.roles.coordinating.run_files import RunFiles
from srlhpc.roles.coordinating.status_entries import rank_entry, totals_by_role
from srlhpc.roles.role import Role
from srlhpc.roles.stillness import TOLD_SECONDS, Standstill, write_stacks
from srlhpc.specs.experiment import StopSpec
from srlhpc.specs.patience import LAST_CHECKPOINT_SECONDS

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
STATUS_SECONDS = 1.0
AWAY_SECONDS = 5.0
"""Seconds between two polls: more means that this process was suspended, or its file system hung."""
ENDING_LIMIT_SECONDS = 60.0


class StepLostError(RuntimeError):
    """An essential rank is lost; the step must be aborted."""


@dataclass(frozen=True)
class CoordinatorFiles:
    """The paths of its attempt that the coordinator reads and writes."""

    outcome: Path
    stop: Path
    checkpoint: Path


@dataclass(frozen=True)
class StepOutcome:
    """How the step ends."""

    state: str
    reason: str
    message: str = ""


class Coordinator(Role):
    """Rank 0's first role.

    Args:
        attempt: number of this attempt.
        commands: rank to the outbox of its commands.
        checkpoint_seconds: between checkpoints; None: only those asked for by updates, by hand and at the end.
        last_checkpoint_seconds: how long to try to write the last one, if the disk is full, say.
        first_checkpoint: whether to write one after the first update (a new run: shows early that it can be written).
        timing: of all roles.
        may_relieve: whether trainers may wait for each other's groups (see roles/stillness.py).
        clock: monotonic seconds.
    """

    label = "coordinator-0"

    def __init__(
        self,
        attempt: int,
        stop: StopSpec,
        files: CoordinatorFiles,
        run_files: RunFiles,
        reports: Inbox,
        commands: Mapping[int, Outbox],
        liveness: Liveness,
        progress: Progress,
        checkpointing: Checkpointing,
        *,
        checkpoint_seconds: float | None,
        first_checkpoint: bool,
        last_checkpoint_seconds: float = LAST_CHECKPOINT_SECONDS,
        timing: LiveTiming,
        may_relieve: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._attempt, self._stop, self._files, self._run_files = attempt, stop, files, run_files
        self._reports, self._commands = reports, commands
        self._liveness, self._progress, self._checkpointing = liveness, progress, checkpointing
        self._records = {record.rank: record for record in liveness.records}
        self._checkpoint_seconds, self._wants_first = checkpoint_seconds, first_checkpoint
        self._last_checkpoint_seconds = last_checkpoint_seconds
        self._clock = clock
        self._looks = Forgiving(clock=clock)
        now = clock()
        self._polled_at = self._looked_at = now
        self._status_at, self._checkpoint_at = -1e9, now
        self._metrics_updates, self._metrics_episodes = progress.updates, progress.episodes
        self._journal = Journal(liveness, progress, checkpointing, now)
        self._timing = timing
        self._is_training = self._is_asked_by_hand = False
        self._outcome: StepOutcome | None = None
        self._stopping = False
        self._stopping_since = 0.0
        self._warnings: list[str] = []
        self._standstill = Standstill(liveness.records, may_relieve=may_relieve)
        self._ended = False

    # --- polling -------------------------------------------------------------------------------------------------

    def poll(self) -> bool:
        self._discount(self._clock())
        busy = self._hear()
        if self._checkpointing.poll():
            busy = True
            self._journal.look(self._clock())
        now = self._clock()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._look(now)
        self._decide(now)
        if now - self._status_at >= STATUS_SECONDS or self._has_first_update:
            self._status_at = now
            self._is_training |= self._has_first_update
            self._journal.look(now)
            self._write_status(now)
        return busy

    def _discount(self, now: float) -> None:
        """Silence counts only while it is listened to: after a suspension all ranks would seem dead."""
        away, self._polled_at = now - self._polled_at, now
        if away > AWAY_SECONDS:
            self._liveness.discount(away)
            self._stopping_since += away

    @property
    def _has_first_update(self) -> bool:
        """Whether the attempt has trained its first batch since the last look: that is worth a status at once."""
        return not self._is_training and self._progress.updates > self._metrics_updates

    def _hear(self) -> bool:
        self._reports.poll()
        busy = False
        while (message := self._reports.take()) is not None:
            report = read_text(message)
            self._reports.release(message)
            # Who was declared dead stays dead: all others have been told.
            if self._records[int(report["rank"])].dead:
                continue
            busy = True
            self._take(report)
            self._answer(int(report["rank"]))
        return busy

    def _take(self, report: Mapping[str, Any]) -> None:
        record = self._records[int(report["rank"])]
        record.heard_at, record.reported = self._clock(), True
        record.host, record.pid = report["host"], report["pid"]
        record.counters = report["counters"]
        record.done = report["done"]
        record.idle_seconds, record.waits = report["idle_seconds"], report["waits"]
        if record.idle_seconds < TOLD_SECONDS:
            record.worked_at = record.heard_at
        if self._outcome is None or self._outcome.reason != "return_mean":
            # The mean that ended the run stays what it was: later episodes would move it.
            self._progress.add_episodes(report["episodes"])
        for update in report["updates"]:
            self._progress.add_update(update)
            if update["checkpoint_due"] and self._checkpointing.is_idle:
                self._ask_for_checkpoint()
        for evaluation in report["evaluations"]:
            self._progress.add_evaluation(evaluation)
        self._decide(self._clock())

    def _answer(self, rank: int) -> None:
        outbox = self._commands[rank]
        outbox.poll()
        message = outbox.acquire()
        assert message is not None, "a rank reports again only after it has its command"
        record = self._records[rank]
        record.exiting = record.done and self._may_exit
        command = Command(
            stop=self._stopping,
            checkpoint=self._checkpointing.asked,
            dead=self._liveness.dead_ranks(),
            exit=record.exiting,
            relief=self._standstill.relief,
            stacks=self._standstill.wants_stacks,
        )
        outbox.send(message, write_text(message, command))

    # --- deciding ------------------------------------------------------------------------------------------------

    def _decide(self, now: float) -> None:
        if self._outcome is None:
            self._outcome = self._reached(now)
        if self._outcome is not None:
            self._bring_to_an_end(now)
        elif self._checkpointing.is_idle and self._is_checkpoint_due(now):
            self._ask_for_checkpoint()

    def _reached(self, now: float) -> StepOutcome | None:
        stop, progress = self._stop, self._progress
        mean = progress.return_mean
        if stop.return_mean is not None and progress.has_full_mean and mean is not None and mean >= stop.return_mean:
            return StepOutcome("finished", "return_mean", f"mean return {mean:.6g} reached {stop.return_mean:g}")
        if stop.steps is not None and progress.steps >= stop.steps:
            return StepOutcome("finished", "steps", f"{counted(progress.steps, 'step')} trained")
        if stop.updates is not None and progress.updates >= stop.updates:
            return StepOutcome("finished", "updates", counted(progress.updates, "update"))
        if stop.hours is not None and progress.seconds(now) >= stop.hours * 3600:
            return StepOutcome("finished", "hours", f"{stop.hours:g} hours of training")
        return None

    def _is_checkpoint_due(self, now: float) -> bool:
        if self._is_asked_by_hand:
            return True
        if self._wants_first and self._progress.updates > 0:
            return True
        every = self._checkpoint_seconds
        return every is not None and self._progress.updates > 0 and now - self._checkpoint_at >= every

    def _ask_for_checkpoint(self) -> None:
        self._wants_first = self._is_asked_by_hand = False
        self._checkpoint_at = self._clock()
        self._checkpointing.ask()
        self._journal.asked_at = self._checkpoint_at

    def _bring_to_an_end(self, now: float) -> None:
        if not self._stopping:
            # At once. A checkpoint that is under way may have begun before, so another follows.
            self._ask_for_checkpoint()
            self._checkpointing.insist()
            self._stopping, self._stopping_since = True, now
            return
        waits_since = self._checkpointing.waits_since
        if waits_since is not None:
            self._stopping_since = now
            if now - waits_since >= self._last_checkpoint_seconds:
                self._do_without_last_checkpoint()
            return
        if self._checkpointing.is_writing:
            self._stopping_since = now
        late = [record for record in self._liveness.records if not record.done and not record.dead]
        # A rank that still starts has not heard of the end.
        if not all(record.reported and not record.is_here for record in late):
            self._stopping_since = now
        # Work under way is waited for, be it an update of an hour or a step of a slow simulator.
        worked_at = max([self._stopping_since, *(r.worked_at for r in self._liveness.records if not r.dead)])
        if now - worked_at > ENDING_LIMIT_SECONDS and not self._ended:
            self._give_up_waiting([record.label for record in late])

    def _give_up_waiting(self, late: Sequence[str]) -> None:
        self._fail(f"did not end within {ENDING_LIMIT_SECONDS:.0f} s of being asked to: {', '.join(late)}", "stuck")

    def _do_without_last_checkpoint(self) -> None:
        """Fails the run, whatever ended it: its last checkpoint could not be written in time. The one before stays."""
        assert self._outcome is not None
        problem = f"within {self._last_checkpoint_seconds:.0f} s the last {self._checkpointing.problem}"
        before, message = self._outcome, f"{self._outcome.message}; but {problem}"
        self._outcome = StepOutcome("failed", before.reason if before.state == "failed" else "checkpoint", message)
        self._checkpointing.give_up()

    # --- deaths --------------------------------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        if self._run_files.is_removed:
            self._fail(
                f"the run's folder is gone from {self._files.outcome.parent}; nothing of it is made anew", "removed"
            )
        if self._looks.exists(self._files.stop):
            mailbox.take(self._files.stop)
            if self._outcome is None:
                log.info("asked to stop: the last checkpoint is written first")
                self._outcome = StepOutcome("interrupted", "signal", "stopped on request")
        # One that is being written may have begun before it was asked for.
        if self._checkpointing.is_idle and self._looks.exists(self._files.checkpoint):
            mailbox.take(self._files.checkpoint)
            self._is_asked_by_hand = True
        for failure in self._liveness.look(now):
            self._lose(failure)
        waits_otherwise = self._outcome is not None or self._checkpointing.is_writing
        if message := self._standstill.look(now, is_excused=waits_otherwise):
            write_stacks()
            self._fail(message, "standstill")

    def _lose(self, failure: RankFailure) -> None:
        record = failure.record
        text = f"rank {record.rank} ({record.label}{f' on {record.host}' if record.host else ''}): {failure.message}"
        log.warning(text)
        self._warnings.append(text)
        if record.is_essential:
            self._fail(text, failure.kind)
        elif failure.kind not in ("killed", "silence") and self._outcome is None:
            self._outcome = StepOutcome("failed", failure.kind, text)
        elif record.one_must_live and not self._stopping and self._is_last(record):
            self._fail(f"no {record.role} is left; the last was {text}", failure.kind)
        self._commands[record.rank].abandon()
        self._reports.forget(record.address)

    def _is_last(self, lost: RankRecord) -> bool:
        return all(record.dead for record in self._liveness.records if record.role == lost.role)

    def _fail(self, message: str, kind: str) -> None:
        self._outcome = StepOutcome("failed", kind, message)
        self._checkpointing.close()
        self._finish()
        raise StepLostError(message)

    # --- ending --------------------------------------------------------------------------------------------------

    @property
    def _may_exit(self) -> bool:
        return (
            self._stopping
            and self._checkpointing.is_idle
            and all(record.done or record.dead for record in self._liveness.records)
        )

    @property
    def is_done(self) -> bool:
        """Whether every living rank was told to exit; the outcome is written then."""
        if not self._ended and self._may_exit and all(r.exiting or r.dead for r in self._liveness.records):
            self._finish()
        return self._ended

    @property
    def checkpoint_asked(self) -> int:
        """Number of the newest checkpoint that is wanted."""
        return self._checkpointing.asked

    @property
    def checkpoint_written(self) -> int:
        """Number of the newest checkpoint that is written, or given up."""
        return self._checkpointing.written

    @property
    def has_lost_ranks(self) -> bool:
        return bool(self._liveness.dead_ranks())

    def _finish(self) -> None:
        self._ended = True
        assert self._outcome is not None
        self._write_status(self._clock())
        outcome = self._outcome
        self._journal.end(outcome.state, outcome.reason, outcome.message, self._clock())
        self._run_files.write_outcome(
            self._files.outcome, {"state": outcome.state, "reason": outcome.reason, "message": outcome.message}
        )

    # --- files ---------------------------------------------------------------------------------------------------

    @property
    def _phase(self) -> str:
        if self._ended:
            return "ended"
        if self._stopping or self._outcome is not None:
            return "stopping"
        if not all(record.reported or record.dead for record in self._liveness.records):
            return "starting"
        return "training" if self._checkpointing.is_idle else "checkpointing"

    def _write_status(self, now: float) -> None:
        summary = self._progress.summary(now)
        last = self._checkpointing.last
        ended = self._outcome if self._ended else None
        roles = totals_by_role(self._liveness.records)
        if self._is_training and self._outcome is None:
            self._timing.look(roles, now)
        timing = self._timing.summary(whole=self._outcome is not None)
        status = {
            "state": ended.state if ended else "running",
            "phase": self._phase,
            "reason": ended.reason if ended else None,
            "attempt": self._attempt,
            **summary,
            "policy_lag": self._progress.lags(),
            **timing,
            "ranks_planned": self._liveness.planned,
            "ranks_alive": self._liveness.alive,
            "last_checkpoint": last.name if last else None,
            "last_checkpoint_updates": self._checkpointing.last_updates,
            "waits": self._waits(now),
            "warnings": [
                *self._warnings,
                *(problem for problem in (self._checkpointing.problem, self._run_files.problem) if problem),
            ],
            "time": time.time(),
            "roles": roles,
            "ranks": [rank_entry(record, now) for record in self._liveness.records],
        }
        line = None
        # Episodes that were told after the last update are in the last line of a run that has reached its end. One that
        # is resumed goes on from its last checkpoint, which does not have those that came after it.
        is_whole = ended is not None and ended.state == "finished"
        has_later_episodes = is_whole and self._progress.episodes > self._metrics_episodes
        if self._progress.updates > self._metrics_updates or has_later_episodes:
            self._metrics_updates, self._metrics_episodes = self._progress.updates, self._progress.episodes
            line = {"time": time.time(), "attempt": self._attempt, **summary, **timing, **self._progress.details()}
        self._run_files.write(status, line)

    def _waits(self, now: float) -> str | None:
        """Why the end waits for the last checkpoint, and how long it will."""
        if self._checkpointing.waits_since is None:
            return None
        left = max(0.0, self._checkpointing.waits_since + self._last_checkpoint_seconds - now)
        return f"the last {self._checkpointing.problem}; make room, it is tried for {left:.0f} s more"

    def counters(self) -> dict[str, float]:
        return {}

    def save_state(self) -> dict[str, Any]:
        """What metrics say of each policy until its next update; totals are in the checkpoint's `meta`."""
        return {"updates_of": json.dumps(self._progress.updates_of)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._progress.updates_of = json.loads(state["updates_of"])

    def close(self) -> None:
        self._checkpointing.close()
        self._run_files.close()
        self._reports.close()
