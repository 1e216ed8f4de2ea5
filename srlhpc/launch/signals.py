"""Signals that ask a run to end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from srlhpc.data import mailbox
from srlhpc.ranks.guarded_signals import guarded
from srlhpc.runs.failures import signal_name
from srlhpc.runs.paths import AttemptPaths

_ECHO_SECONDS = 1.0
"""So soon after a SIGTERM or SIGHUP that was the first signal the same one is the same request: timeout(1) signals the
process, and then its group."""


class Signals:
    """The first SIGINT, SIGTERM or SIGHUP asks for a checkpoint and an end, the second for an end at once.

    Args:
        attempt: whose mailbox is used.
        raises: whether the second raises KeyboardInterrupt, wherever the main thread is.
    """

    def __init__(self, attempt: AttemptPaths, *, raises: bool) -> None:
        self._attempt = attempt
        self._raises = raises
        self._pid = os.getpid()
        self.count = 0
        self._first, self._first_at = 0, 0.0
        self._is_owed = False
        """Whether the coordinator is still to be asked."""

    @contextmanager
    def caught(self) -> Iterator[Signals]:
        with guarded(dict.fromkeys((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), self._note)):
            yield self

    def insist(self) -> None:
        """Asks for the end again, if it could not be asked for when the signal came."""
        if self._is_owed:
            with suppress(OSError):
                mailbox.post(self._attempt.stop)
                self._is_owed = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            self._leave(number)
            return
        now = time.monotonic()
        if self.count and number == self._first != signal.SIGINT and now - self._first_at < _ECHO_SECONDS:
            return
        self.count += 1
        if self.count == 1:
            self._first, self._first_at = number, now
            self._is_owed = True
            self.insist()
            how = "press Ctrl-C again" if number == signal.SIGINT else "send it again"
            name = "" if number == signal.SIGINT else f"{signal_name(number)}: "
            # A handler may interrupt a write to the same stream, so this goes past its buffer.
            with suppress(OSError):
                os.write(2, f"\n{name}checkpointing, {how} to end at once\n".encode())
        elif self._raises:
            raise KeyboardInterrupt

    def _leave(self, number: int) -> None:
        """Acts as a process forked by an environment should: Ctrl-C is not meant for it, any other signal ends it."""
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
        os.kill(os.getpid(), number)


WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)
"""Announce the end of the job: time limit or pre-emption."""
ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The job, or only its training, is being ended."""
WARNED_VARIABLE = "SRLHPC_WARNED"
"""Set by the batch script when a warning came during its set-up lines."""


class JobSignals:
    """Notes signals from `catch` on. Those that came before, while they were blocked, are noted then."""

    def __init__(self) -> None:
        self.announced_at: float | None = None
        """Seconds on the monotonic clock; None: no warning yet."""
        self.terminated_at: float | None = None

    def catch(self) -> None:
        """Replaces submitit's handlers by its own; call it from the main thread."""
        for number in (*WARNINGS, *ENDS):
            signal.signal(number, self._note)
        signal.signal(signal.SIGCONT, signal.SIG_DFL)
        if os.environ.pop(WARNED_VARIABLE, None):
            self.announced_at = time.monotonic()
        # The batch script has blocked them until there is a handler.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*WARNINGS, *ENDS))

    @property
    def any(self) -> bool:
        return self.announced_at is not None or self.terminated_at is not None

    def _note(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if number in WARNINGS:
            self.announced_at = self.announced_at or now
        else:
            self.terminated_at = self.terminated_at or now
        # A handler may interrupt a write to the same stream, so this goes past its buffer.
        os.write(2, f"{signal.Signals(number).name}: asking for a checkpoint\n".encode())
