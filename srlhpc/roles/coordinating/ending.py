"""The end of a step, from the moment that ranks are asked to stop: what it waits for, and when it gives up."""

from __future__ import annotations

from srlhpc.roles.coordinating.checkpointing import Checkpointing
from srlhpc.roles.coordinating.liveness import Liveness
from srlhpc.roles.coordinating.outcome import StepOutcome

ENDING_LIMIT_SECONDS = 60.0
"""Seconds without any work of any rank after which the end is given up."""


class Ending:
    """Waits for the last checkpoint, and for every rank that lives to be done.

    Args:
        last_checkpoint_seconds: how long to try to write the last checkpoint, if the disk is full, say.
    """

    def __init__(self, liveness: Liveness, checkpointing: Checkpointing, last_checkpoint_seconds: float) -> None:
        self._liveness, self._checkpointing = liveness, checkpointing
        self._last_checkpoint_seconds = last_checkpoint_seconds
        self.has_begun = False
        self._since = 0.0
        """When the limit for ranks began to count; it moves on while something else than a rank is waited for."""

    def begin(self, now: float) -> None:
        """Notes that ranks are asked to stop from now on."""
        self.has_begun, self._since = True, now

    def discount(self, away_seconds: float) -> None:
        """Does not count a time in which nobody could be heard."""
        self._since += away_seconds

    @property
    def may_exit(self) -> bool:
        """Whether ranks that are done may leave: all are, and what they sent to be kept is written or given up."""
        return (
            self.has_begun
            and self._checkpointing.is_settled
            and all(record.done or record.dead for record in self._liveness.records)
        )

    def overdue_ranks(self, now: float) -> list[str] | None:
        """Labels of the ranks that did not end in time, else what their checkpoint lacks, else who stayed.

        None: there is time left.
        """
        # Neither a full disk nor a slow one is the fault of ranks.
        if self._checkpointing.waits_since is not None:
            self._since = now
            return None
        if self._checkpointing.is_writing:
            self._since = now
        late = [record for record in self._liveness.records if not record.done and not record.dead]
        # A rank that still starts has not heard of the end.
        if not all(record.reported and not record.is_here for record in late):
            self._since = now
        # Work under way is waited for, be it an update of an hour or a step of a slow simulator.
        worked_at = max([self._since, *(r.worked_at for r in self._liveness.records if not r.dead)])
        if now - worked_at <= ENDING_LIMIT_SECONDS:
            return None
        stayed = [record.label for record in self._liveness.records if not record.exiting and not record.dead]
        return [record.label for record in late] or self._checkpointing.lacking or stayed

    def is_checkpoint_overdue(self, now: float) -> bool:
        """Whether the last checkpoint has failed to be written for as long as it is tried."""
        waits_since = self._checkpointing.waits_since
        return waits_since is not None and now - waits_since >= self._last_checkpoint_seconds

    def without_checkpoint(self, outcome: StepOutcome) -> StepOutcome:
        """The run fails, whatever ended it, if its last checkpoint could not be written; the one before stays."""
        problem = f"within {self._last_checkpoint_seconds:.0f} s the last {self._checkpointing.problem}"
        reason = outcome.reason if outcome.state == "failed" else "checkpoint"
        return StepOutcome("failed", reason, f"{outcome.message}; but {problem}")

    def waits(self, now: float) -> str | None:
        """Why the end waits for the last checkpoint, and how long it will; None if it does not."""
        if self._checkpointing.waits_since is None:
            return None
        left = max(0.0, self._checkpointing.waits_since + self._last_checkpoint_seconds - now)
        return f"the last {self._checkpointing.problem}; make room, it is tried for {left:.0f} s more"
