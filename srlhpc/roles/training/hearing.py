"""After a long update a trainer hears the coordinator before the next: a stop must not cost another one."""

from __future__ import annotations

from collections.abc import Callable

LONG_SECONDS = 1.0
"""After shorter updates nobody waits: a command comes in time."""
_SHARE = 0.1
"""Largest share of the update's time that is waited."""


class Hearing:
    """ended --(reported)--> told --(a command)--> heard

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until = -1.0
        self._told = False

    @property
    def is_due(self) -> bool:
        """Whether the coordinator's word on the last update is still to come."""
        return self._until >= 0.0 and self._clock() < self._until

    def ended(self, seconds: float) -> None:
        """An update of so many seconds has ended."""
        self._told = False
        self._until = self._clock() + _SHARE * seconds if seconds >= LONG_SECONDS else -1.0

    def reported(self) -> None:
        """The update is in a report."""
        self._told = True

    def heard(self) -> None:
        """A command came, which answers the last report."""
        if self._told:
            self._until = -1.0
