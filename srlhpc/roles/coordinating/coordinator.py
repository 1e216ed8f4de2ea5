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
from srlhpc.roles.coordinating.checkpoint_schedule import CheckpointSchedule
from srlhpc.roles.coordinating.checkpointing import Checkpointing
from srlhpc.roles.coordinating.ending import ENDING_LIMIT_SECONDS, Ending
from srlhpc.roles.coordinating.journal import Journal
from srlhpc.roles.coordinating.live_timing import LiveTiming
from srlhpc.roles.coordinating.liveness import Liveness, RankFailure, RankRecord
from srlhpc.roles.coordinating.outcome import StepOutcome, limit_reached
from srlhpc.roles.coordinating.progress import Progress
from srlhpc.roles.coordinating.run_files import RunFiles
from srlhpc.roles.coordinating.status import StatusWriter
from srlhpc.roles.role import Role
from srlhpc.roles.stillness import TOLD_SECONDS, Standstill, write_stacks
from srlhpc.specs.experiment import StopSpec
from srlhpc.specs.patience import LAST_CHECKPOINT_SECONDS

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
AWAY_SECONDS = 5.0
"""Seconds between two polls: more means that this process was suspended, or its file system hung."""


class StepLostError(RuntimeError):
    """An essential rank is lost; the step must be aborted."""


@dataclass(frozen=True)
class CoordinatorFiles:
    """The paths of its attempt that the coordinator reads and writes."""

    outcome: Path
    stop: Path
    checkpoint: Path


class Coordinator(Role):
    """Rank 0's first role.

    Args:
        attempt: number of this attempt.
        commands: rank to the outbox of its commands.
        schedule: when checkpoints are due that neither an update nor the end asks for.
        last_checkpoint_seconds: how long to try to write the last one, if the disk is full, say.
        timing: of all roles.
        warnings: what went wrong before, and stays worth knowing.
        may_relieve: whether trainers may wait for each other's groups (see roles/stillness.py).
        matches: what the status says of matches; None: there are none.
        lost: told of every rank that is dead; None: nobody is.
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
        schedule: CheckpointSchedule,
        last_checkpoint_seconds: float = LAST_CHECKPOINT_SECONDS,
        timing: LiveTiming,
        warnings: Sequence[str] = (),
        may_relieve: bool = False,
        matches: Callable[[], Mapping[str, Any]] | None = None,
        lost: Callable[[int], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop, self._files, self._run_files = stop, files, run_files
        self._reports, self._commands = reports, commands
        self._liveness, self._progress, self._checkpointing = liveness, progress, checkpointing
        self._records = {record.rank: record for record in liveness.records}
        self._schedule, self._clock = schedule, clock
        self._looks = Forgiving(clock=clock)
        now = clock()
        self._polled_at = self._looked_at = now
        self._journal = Journal(liveness, progress, checkpointing, now)
        self._status = StatusWriter(attempt, run_files, liveness, progress, checkpointing, timing, matches)
        self._lost = lost
        self._status.warnings.extend(warnings)
        self._outcome: StepOutcome | None = None
        self._ending = Ending(liveness, checkpointing, last_checkpoint_seconds)
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
        if self._status.is_due(now):
            self._journal.look(now)
            self._write_status(now)
        return busy

    def _discount(self, now: float) -> None:
        """Silence counts only while it is listened to: after a suspension all ranks would seem dead."""
        away, self._polled_at = now - self._polled_at, now
        if away > AWAY_SECONDS:
            self._liveness.discount(away)
            self._ending.discount(away)

    def _hear(self) -> bool:
        self._reports.poll()
        busy = False
        while (message := self._reports.take()) is not None:
            report = read_text(message)
            self._reports.release(message)
            # Who was declared dead stays dead: all others act on it already.
            if self._records[int(report["rank"])].dead:
                continue
            busy = True
            self._take(report)
            self._answer(int(report["rank"]))
        return busy

    def _take(self, report: Mapping[str, Any]) -> None:
        record, now = self._records[int(report["rank"])], self._clock()
        record.take(report, now)
        # A rank that reports and does nothing else does not work.
        if record.idle_seconds < TOLD_SECONDS:
            record.worked_at = now
        for note in report["notes"]:
            self._pass_on(record, note)
        if not self._has_final_counts:
            self._progress.add_episodes(report["episodes"])
        for update in report["updates"]:
            self._progress.add_update(update)
            # Not after the last one: trainers that have ended send no part.
            if update["checkpoint_due"] and self._checkpointing.is_idle and not self._ending.has_begun:
                self._ask_for_checkpoint()
        self._progress.add_pairings(report["pairings"])
        for evaluation in report["evaluations"]:
            self._progress.add_evaluation(evaluation)
        # At once, so that the answer to this very report has the decision.
        self._decide(self._clock())

    def _pass_on(self, record: RankRecord, note: str) -> None:
        """Tells users what a rank notes, once, however many ranks do."""
        if not any(warning.endswith(note) for warning in self._status.warnings):
            self._status.warnings.append(f"{record.host}: {note}")
            log.warning(self._status.warnings[-1])

    @property
    def _has_final_counts(self) -> bool:
        """Whether episodes that are reported from now on are not counted.

        They would move the mean that ended the run; and those that the last checkpoint does not have, the attempt that
        goes on from it would not have either, so that its curve would begin below the end of this one.
        """
        return self._checkpointing.has_taken_last or (
            self._outcome is not None and self._outcome.reason == "return_mean"
        )

    def _answer(self, rank: int) -> None:
        outbox = self._commands[rank]
        outbox.poll()
        message = outbox.acquire()
        assert message is not None, "a rank reports again only after it has its command"
        record = self._records[rank]
        record.exiting = record.done and self._ending.may_exit
        command = Command(
            stop=self._ending.has_begun,
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
            self._outcome = limit_reached(self._stop, self._progress, now)
        if self._outcome is not None:
            self._bring_to_an_end(now)
        elif self._checkpointing.is_idle and self._schedule.is_due(now, self._progress.updates):
            self._ask_for_checkpoint()

    def _ask_for_checkpoint(self) -> None:
        now = self._clock()
        self._schedule.note(now)
        self._checkpointing.ask()
        self._journal.asked_at = now

    def _bring_to_an_end(self, now: float) -> None:
        if not self._ending.has_begun:
            # At once. A checkpoint that is under way may have begun before, so another follows.
            self._ask_for_checkpoint()
            self._checkpointing.insist()
            self._ending.begin(now)
            return
        late = self._ending.overdue_ranks(now)
        if self._ending.is_checkpoint_overdue(now):
            self._do_without_last_checkpoint()
        elif late is not None and not self._ended:
            self._fail(f"did not end within {ENDING_LIMIT_SECONDS:.0f} s of being asked to: {', '.join(late)}", "stuck")

    def _do_without_last_checkpoint(self) -> None:
        assert self._outcome is not None
        self._outcome = self._ending.without_checkpoint(self._outcome)
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
            self._schedule.ask_by_hand()
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
        self._status.warnings.append(text)
        if record.is_essential:
            self._fail(text, failure.kind)
        # What a rank raises itself would come again elsewhere: the run fails, but in order, with a last checkpoint.
        elif failure.kind not in ("killed", "silence") and self._outcome is None:
            self._outcome = StepOutcome("failed", failure.kind, text)
        elif record.one_must_live and not self._ending.has_begun and self._is_last(record):
            self._fail(f"no {record.role} is left; the last was {text}", failure.kind)
        self._commands[record.rank].abandon()
        self._reports.forget(record.address)
        if self._lost is not None:
            self._lost(record.rank)

    def _is_last(self, lost: RankRecord) -> bool:
        return all(record.dead for record in self._liveness.records if record.role == lost.role)

    def _fail(self, message: str, kind: str) -> None:
        self._outcome = StepOutcome("failed", kind, message)
        self._checkpointing.close()
        self._finish()
        raise StepLostError(message)

    # --- ending --------------------------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether every living rank has been answered `exit`; the outcome is written then."""
        if not self._ended and self._ending.may_exit and all(r.exiting or r.dead for r in self._liveness.records):
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
        if self._ending.has_begun or self._outcome is not None:
            return "stopping"
        if not all(record.reported or record.dead for record in self._liveness.records):
            return "starting"
        return "training" if self._checkpointing.is_idle else "checkpointing"

    def _write_status(self, now: float) -> None:
        waits = self._ending.waits(now)
        self._status.write(now, self._phase, self._outcome, has_ended=self._ended, waits=waits)

    def counters(self) -> dict[str, float]:
        return {}

    def save_state(self) -> dict[str, Any]:
        """What metrics say of each policy until its next update; totals are in the checkpoint's `meta`."""
        # Evaluators that go on from here do not play it again, and later lines are cut off then.
        if self._progress.has_played:
            self._write_status(self._clock())
        return {"updates_of": json.dumps(self._progress.updates_of)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._progress.updates_of = json.loads(state["updates_of"])

    def close(self) -> None:
        self._checkpointing.close()
        self._run_files.close()
        self._reports.close()
