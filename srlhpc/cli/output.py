"""Standard output and error of the command line, closed or full as they may be.

Nothing can be reported on a standard error that takes nothing, so what is written there is dropped. A standard output
that takes nothing ends the command with a message, since its result is lost.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import TextIO


class OutputError(Exception):
    """Standard output takes nothing. No OSError, so that nobody takes it for the failure of a file of a run."""


class _Descriptor(io.RawIOBase):
    def __init__(self, number: int, fail: Callable[[OSError], None]) -> None:
        self._number, self._fail = number, fail

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def write(self, content: object) -> int:
        data = memoryview(content).cast("B")  # type: ignore[arg-type]
        try:
            return os.write(self._number, data)
        except OSError as error:
            self._fail(error)
        return len(data)


def prepare_output() -> None:
    """Puts streams in place that know what to do when nothing can be written; opens what is closed to nowhere."""
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        _open_to_nowhere(number, mode)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 (it stays open)
    sys.stdout = _stream(sys.stdout, 1, _tell)
    sys.stderr = _stream(sys.stderr, 2, _drop)


def forgive_output() -> None:
    """What environments print is dropped where it cannot be written: that is no reason to end their run."""
    if isinstance(getattr(getattr(sys.stdout, "buffer", None), "raw", None), _Descriptor):
        sys.stdout = _stream(sys.stdout, 1, _drop)


def drop_output() -> None:
    """Sends standard output nowhere from now on: its reader has left, or it takes nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _open_to_nowhere(number: int, mode: int) -> None:
    """A closed descriptor would be that of the next file that is opened, and what is printed would go into it."""
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, mode)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)


def _stream(before: TextIO | None, number: int, fail: Callable[[OSError], None]) -> TextIO:
    encoding = before.encoding if before is not None else "utf-8"
    raw = io.BufferedWriter(_Descriptor(number, fail))
    return io.TextIOWrapper(raw, encoding, errors="backslashreplace", line_buffering=True)


def _tell(error: OSError) -> None:
    if isinstance(error, BrokenPipeError):
        raise error
    raise OutputError(error.strerror or str(error)) from None


def _drop(_error: OSError) -> None:
    """Nobody can be told."""
