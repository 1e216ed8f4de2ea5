"""Where a run stands, once a second: the status that `srlhpc status` prints, and a line of metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from srlhpc.roles.coordinating.checkpointing import Checkpointing
from srlhpc.roles.coordinating.live_timing import LiveTiming
from srlhpc.roles.coordinating.liveness import Liveness
from srlhpc.roles.coordinating.outcome import StepOutcome
from srlhpc.roles.coordinating.progress import Progress
from srlhpc.roles.coordinating.run_files import RunFiles
from srlhpc.roles.coordinating.status_entries import rank_entry, totals_by_role

STATUS_SECONDS = 1.0


class StatusWriter:
    """Gathers status and metrics from all that the coordinator knows.

    Args:
        attempt: number of this attempt.
        timing: of all roles.
        matches: what is said of matches; None: there are none.
    """

    def __init__(
        self,
        attempt: int,
        run_files: RunFiles,
        liveness: Liveness,
        progress: Progress,
        checkpointing: Checkpointing,
        timing: LiveTiming,
        matches: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self._attempt, self._run_files, self._timing = attempt, run_files, timing
        self._matches = matches
        self._liveness, self._progress, self._checkpointing = liveness, progress, checkpointing
        self.warnings: list[str] = []
        """What went wrong in this attempt and stays worth knowing."""
        self._written_at = -1e9
        self._metrics_updates, self._metrics_episodes = progress.updates, progress.episodes
        """Updates and episodes of the last line of metrics."""
        self._is_training = False

    def is_due(self, now: float) -> bool:
        """Whether a second has passed, or the attempt has trained its first batch, which is worth a status at once."""
        return now - self._written_at >= STATUS_SECONDS or self._has_first_update

    @property
    def _has_first_update(self) -> bool:
        return not self._is_training and self._progress.updates > self._metrics_updates

    def write(self, now: float, phase: str, outcome: StepOutcome | None, *, has_ended: bool, waits: str | None) -> None:
        """Writes the status, and a line of metrics if there is news since the last one.

        Args:
            now: seconds on the coordinator's clock.
            phase: what the step is at, a word for people.
            outcome: how the step ends; None while it trains.
            has_ended: whether this is the end, and not only on its way.
            waits: why the end waits for the last checkpoint.
        """
        self._written_at = now
        self._is_training |= self._has_first_update
        summary = self._progress.summary(now)
        last = self._checkpointing.last
        ended = outcome if has_ended else None
        roles = totals_by_role(self._liveness.records)
        if self._is_training and outcome is None:
            self._timing.look(roles, now)
        timing = self._timing.summary(whole=outcome is not None)
        status = {
            "state": ended.state if ended else "running",
            "phase": phase,
            "reason": ended.reason if ended else None,
            "attempt": self._attempt,
            **summary,
            "policy_lag": self._progress.lags(),
            "evaluation": {**self._progress.evaluation, "pairings": list(self._progress.pairings)},
            **timing,
            **({} if self._matches is None else {"matches": self._matches()}),
            "ranks_planned": self._liveness.planned,
            "ranks_alive": self._liveness.alive,
            "last_checkpoint": last.name if last else None,
            "last_checkpoint_updates": self._checkpointing.last_updates,
            "waits": waits,
            "warnings": [
                *self.warnings,
                *self._checkpointing.problems,
                *([self._run_files.problem] if self._run_files.problem else []),
            ],
            "time": time.time(),
            "roles": roles,
            "ranks": [rank_entry(record, now) for record in self._liveness.records],
        }
        line = None
        # Episodes that were reported after the last update are in the last line of a run that has reached its end. One
        # that is resumed starts from its last checkpoint, which does not have those that came after it.
        is_whole = ended is not None and ended.state == "finished"
        has_later_episodes = is_whole and self._progress.episodes > self._metrics_episodes
        if self._progress.updates > self._metrics_updates or has_later_episodes or self._progress.has_played:
            self._metrics_updates, self._metrics_episodes = self._progress.updates, self._progress.episodes
            line = {"time": time.time(), "attempt": self._attempt, **summary, **timing, **self._progress.details()}
            if self._progress.has_played:
                line["played"] = self._progress.take_played()
        self._run_files.write(status, line)
