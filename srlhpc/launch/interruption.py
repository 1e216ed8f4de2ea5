"""Signals that ask a run to end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from srlhpc.data import mailbox
from srlhpc.launch.failures import signal_name
from srlhpc.launch.guarded_signals import guarded
from srlhpc.launch.rundir import AttemptPaths


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
        self._is_owed = False
        """Whether the coordinator is still to be asked."""

    @contextmanager
    def caught(self) -> Iterator[Signals]:
        with guarded(dict.fromkeys((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), self._note)):
            yield self

    def insist(self) -> None:
        """Asks for the end, if that was wanted and could not be asked for yet."""
        if self._is_owed:
            with suppress(OSError):
                mailbox.post(self._attempt.stop)
                self._is_owed = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            self._leave(number)
            return
        self.count += 1
        if self.count == 1:
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
        """In a process that an environment has forked, which is its own: Ctrl-C is not meant for it, as in a rank."""
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
        os.kill(os.getpid(), number)
