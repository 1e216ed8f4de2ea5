"""A job that cannot write because the disk is full waits for room, says so, and tries again within its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from srlhpc.data.full_disk import is_full, not_written
from srlhpc.launch.signals import JobSignals
from srlhpc.runs.progress import ProgressLine

_T = TypeVar("_T")

RETRY_SECONDS = 5.0
"""Seconds between two tries."""
_SAY_SECONDS = 60.0
"""Seconds between two lines that say so."""


class EndedFirst(Exception):
    """The job's end was announced while it waited for room."""


class WaitingForRoom:
    """Waits within the time of a job.

    Args:
        folder: the run's.
        signals: of the job; they end the wait.
        progress: where it is reported.
        sleep: between tries; None for that of the clock.
    """

    def __init__(
        self,
        folder: Path,
        signals: JobSignals,
        progress: ProgressLine,
        *,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._folder, self._signals, self._progress = folder, signals, progress
        self._sleep = sleep

    def __call__(self, write: Callable[[], _T]) -> _T:
        """Writes, again and again while the disk is full.

        Args:
            write: leaves nothing half done when it raises.

        Raises:
            EndedFirst: the end of the job came before there was room.
            OSError: it fails for another reason.
        """
        waited = 0.0
        while True:
            try:
                return write()
            except OSError as error:
                if not is_full(error):
                    raise
                if waited % _SAY_SECONDS < RETRY_SECONDS:
                    self._progress.say(
                        f"the job waits for room: {not_written(self._folder, error)}; it tries again until its end"
                    )
            if self._signals.any:
                raise EndedFirst
            (self._sleep or time.sleep)(RETRY_SECONDS)
            waited += RETRY_SECONDS
