"""Signals that ask a run to end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from srlhpc.data import mailbox
from srlhpc.launch.failures import signal_name
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
        self.count = 0
        self._is_owed = False
        """Whether the coordinator is still to be asked."""

    @contextmanager
    def caught(self) -> Iterator[Signals]:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._note) for number in numbers}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def insist(self) -> None:
        """Asks for the end, if that was wanted and could not be asked for yet."""
        if self._is_owed:
            with suppress(OSError):
                mailbox.post(self._attempt.stop)
                self._is_owed = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
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
