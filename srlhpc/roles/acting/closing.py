"""Closing environments: whatever their `close` does, the run ends as it would have."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from srlhpc.environment import Environment

CLOSE_SECONDS = 10.0
"""Time for one environment to close."""

log = logging.getLogger(__name__)


class _LateError(Exception):
    """The time to close is over."""


def close(environment: Environment, where: str) -> None:
    """Closes an environment; what it raises, or that it does not come back, is a warning that begins with `where`."""
    try:
        with _time_limit(CLOSE_SECONDS):
            environment.close()
    except _LateError:
        log.warning("%s: its close() did not end within %g s", where, CLOSE_SECONDS)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        log.warning("%s: its close() failed: %s", where, raised(error))


def raised(error: BaseException) -> str:
    """What an environment raised, with its type."""
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    return f"{type(error).__name__}: {error}"


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raises _LateError in the body after so long, where Python comes to run; only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise _LateError

    before = signal.signal(signal.SIGALRM, give_up)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        if before is not None:
            signal.signal(signal.SIGALRM, before)
        # Whoever had set a timer gets it back, later by what closing took.
        signal.setitimer(signal.ITIMER_REAL, *timer)
