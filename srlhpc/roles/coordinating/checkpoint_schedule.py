"""When a checkpoint is due that neither a trainer's update nor the end asks for."""

from __future__ import annotations


class CheckpointSchedule:
    """Due by time, early in a new run, and by hand.

    Args:
        every_seconds: between checkpoints; None: only those asked for by updates, by hand and at the end.
        first: whether one is due after the first update (a new run: shows early that it can be written).
        now: seconds on the caller's clock.
    """

    def __init__(self, every_seconds: float | None, now: float, *, first: bool) -> None:
        self._every_seconds, self._wants_first, self._asked_at = every_seconds, first, now
        self._is_asked_by_hand = False

    def ask_by_hand(self) -> None:
        """Makes one due at once."""
        self._is_asked_by_hand = True

    def note(self, now: float) -> None:
        """Begins anew: a checkpoint was asked for, for whatever reason."""
        self._wants_first = self._is_asked_by_hand = False
        self._asked_at = now

    def is_due(self, now: float, updates: int) -> bool:
        """Whether to ask for one; before the first update only by hand."""
        if self._is_asked_by_hand:
            return True
        if not updates:
            return False
        every = self._every_seconds
        return self._wants_first or (every is not None and now - self._asked_at >= every)
