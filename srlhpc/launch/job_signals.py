"""Signals of a batch system to its foreman. Handlers only take a note; the foreman acts."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)
"""Announce the end of the job: time limit or pre-emption."""
ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The job, or only its training, is being ended."""
WARNED_VARIABLE = "SRLHPC_WARNED"
"""Set by the batch script when a warning came during its set-up lines."""


class JobSignals:
    """Notes signals from `catch` on. Those that came before, while they were blocked, are noted then."""

    def __init__(self) -> None:
        self.warned_at: float | None = None
        """Seconds on the monotonic clock; None: no warning yet."""
        self.terminated_at: float | None = None
        self.requeue: Callable[[int, FrameType | None], Any] | None = None
        """submitit's handler, which requeues the job and exits."""

    def catch(self) -> None:
        """Puts the notes in place of submitit's handlers; call it from the main thread."""
        for number in (*WARNINGS, *ENDS):
            before = signal.signal(number, self._note)
            if number in WARNINGS and callable(before):
                self.requeue = before
        signal.signal(signal.SIGCONT, signal.SIG_DFL)
        if os.environ.pop(WARNED_VARIABLE, None):
            self.warned_at = time.monotonic()
        # The batch script blocks them until somebody can take a note.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*WARNINGS, *ENDS))

    @property
    def any(self) -> bool:
        return self.warned_at is not None or self.terminated_at is not None

    def _note(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if number in WARNINGS:
            self.warned_at = self.warned_at or now
        else:
            self.terminated_at = self.terminated_at or now
        # A handler may interrupt a write to the same stream, so this goes past its buffer.
        os.write(2, f"{signal.Signals(number).name}: asking for a checkpoint\n".encode())
