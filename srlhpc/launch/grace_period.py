"""The announced end of a job: a checkpoint is asked for, waited for within limits, and the end gets its name.

announced (USR1, USR2 at the foreman; TERM at the ranks only)  -> checkpoint, then requeue
ended (TERM, INT at the foreman: cancelled, limit reached)     -> checkpoint, then end; Slurm or the user decides
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property

from srlhpc.data import mailbox
from srlhpc.data.forgiving import Forgiving
from srlhpc.launch.signals import JobSignals
from srlhpc.runs.checkpoints import last_checkpoint
from srlhpc.runs.outcome import Outcome, unwritten
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.progress import ProgressLine
from srlhpc.slurm.time_limit import hours_text

_REQUEUE_SECONDS = 5.0
"""Part of the lead time that is kept for the requeue itself."""
END_SECONDS = 25.0
"""Time for a checkpoint after TERM: Slurm kills after KillWait, 30 s by default."""
_EARLY_SECONDS = 60.0
"""How much before its time Slurm may send its signal."""


class GracePeriod:
    """Whether and why a job is about to end.

    Args:
        paths: the run.
        job: its id.
        signals: caught.
        lead_seconds: how long before the time limit Slurm sends its signal.
        limit_seconds: the job's time limit, from now.
        is_cancelled: whether `srlhpc cancel` wants the end, after which nothing kills.
        progress: where it is reported that a checkpoint was asked for.
        ask_minutes: the job's time limit as Slurm has it now: somebody may have changed it. None: not known.
    """

    def __init__(
        self,
        paths: RunPaths,
        job: str,
        signals: JobSignals,
        *,
        lead_seconds: float,
        limit_seconds: float,
        is_cancelled: Callable[[], bool],
        progress: ProgressLine,
        ask_minutes: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._paths, self._job, self._signals, self._progress = paths, job, signals, progress
        self._is_cancelled = is_cancelled
        self._looks = Forgiving()
        self._asked: list[AttemptPaths] = []
        self._checkpoint_seconds = max(_REQUEUE_SECONDS, lead_seconds - _REQUEUE_SECONDS)
        self._ask_minutes, self._limit_seconds = ask_minutes, limit_seconds
        self._begun, self._lead_seconds = time.monotonic(), lead_seconds

    def overdue_outcome(self, attempt: AttemptPaths) -> Outcome | None:
        """Asks for a checkpoint when the end is announced; an outcome, if none came in time, ends the ranks."""
        if self._signals.announced_at is None and self._looks.exists(attempt.terminated):
            self._signals.announced_at = time.monotonic()
        if not self._signals.any or self._looks.exists(attempt.outcome):
            return None
        self._ask(attempt)
        seconds = self._overdue()
        if seconds is None:
            return None
        if failed := unwritten(self._paths, attempt):
            return failed
        message = f"no checkpoint within {seconds:.0f} s of being asked; {last_checkpoint(self._paths)}"
        return Outcome("interrupted", "signal", message)

    def _ask(self, attempt: AttemptPaths) -> None:
        if attempt in self._asked:
            return
        # A file system that fails just now is asked again at the next look.
        with suppress(OSError):
            mailbox.post(attempt.stop)
            self._asked.append(attempt)
        if attempt not in self._asked:
            return
        self._progress.say(
            f"the job is about to end: asking for a checkpoint; until now {last_checkpoint(self._paths)}"
        )

    def _overdue(self) -> float | None:
        """The limit in seconds that the checkpoint has missed, if any."""
        now, warned, terminated = time.monotonic(), self._signals.announced_at, self._signals.terminated_at
        if warned is not None and now > warned + self._checkpoint_seconds:
            return self._checkpoint_seconds
        if terminated is not None and now > terminated + self._end_seconds:
            return self._end_seconds
        return None

    @cached_property
    def _end_seconds(self) -> float:
        """Time after TERM. Only Slurm kills soon; `srlhpc cancel`, which says so first, leaves as much as a warning."""
        return max(END_SECONDS, self._checkpoint_seconds) if self._is_cancelled() else END_SECONDS

    def is_asked_for(self, attempt: AttemptPaths) -> bool:
        """Whether an attempt was asked to end."""
        return attempt in self._asked

    def has_begun(self, attempt: AttemptPaths) -> bool:
        """Whether an attempt was asked to end, or has written how it ended."""
        return self.is_asked_for(attempt) or self._looks.exists(attempt.outcome)

    def was_announced(self, attempt: AttemptPaths) -> bool:
        """Whether somebody wants the nodes back, be it for the time limit or for another job."""
        return self._signals.announced_at is not None or self._looks.exists(attempt.terminated)

    def named(self, attempt: AttemptPaths, outcome: Outcome) -> Outcome:
        """An interruption with its reason, as far as the foreman knows it."""
        if outcome.state != "interrupted":
            return outcome
        if self._signals.terminated_at is not None:
            if self._looks.exists(attempt.terminated):
                shortened = "" if self._is_near(self._limit_seconds) else self._shortened_limit()
                message = f"Slurm ended job {self._job}{shortened}; {last_checkpoint(self._paths)}"
                return Outcome("interrupted", "terminated", message)
            return Outcome("interrupted", "cancelled", f"cancelled; {last_checkpoint(self._paths)}")
        if not self.was_announced(attempt):
            return Outcome("interrupted", "cancelled", outcome.message)
        # Near the time limit it is the time limit; else somebody more important wants the nodes.
        if self._is_near(self._limit_seconds):
            return Outcome("interrupted", "time_limit", outcome.message)
        if shortened := self._shortened_limit():
            return Outcome("interrupted", "time_limit", f"{outcome.message}{shortened}")
        return Outcome("interrupted", "preemption", outcome.message)

    def _is_near(self, limit_seconds: float) -> bool:
        return time.monotonic() >= self._begun + limit_seconds - self._lead_seconds - _EARLY_SECONDS

    def _shortened_limit(self) -> str:
        """What to say where the job ends by a time limit that is shorter now than it was submitted with."""
        minutes = self._ask_minutes()
        if minutes is None or 60.0 * minutes >= self._limit_seconds or not self._is_near(60.0 * minutes):
            return ""
        before, now = hours_text(int(self._limit_seconds // 60)), hours_text(minutes)
        return f"; the time limit of job {self._job} was shortened from {before} to {now}"
