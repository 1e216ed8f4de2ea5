"""The end of the process: what an environment has left in it does not hold it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import NoReturn

LEAVE_SECONDS = 5.0
"""Time for threads and exit hooks to end by themselves."""
_TIMERS = {
    signal.ITIMER_REAL: signal.SIGALRM,
    signal.ITIMER_VIRTUAL: signal.SIGVTALRM,
    signal.ITIMER_PROF: signal.SIGPROF,
}


def leave(code: int) -> NoReturn:
    """Ends this process with an exit code: soon, and by no signal of a timer that was left running."""
    for timer, number in _TIMERS.items():
        signal.signal(number, signal.SIG_IGN)
        signal.setitimer(timer, 0.0)
    # A debugger may go on in this process.
    if sys.gettrace() is None:
        threading.Thread(target=_insist, args=(code,), daemon=True).start()
    sys.exit(code)


def _insist(code: int) -> None:
    time.sleep(LEAVE_SECONDS)
    text = f"srlhpc: {_what_holds()} did not end within {LEAVE_SECONDS:g} s after the command; ended without it\n"
    # Past the buffer of the stream, which whoever hangs may hold.
    with suppress(OSError):
        os.write(2, text.encode(errors="backslashreplace"))
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def _what_holds() -> str:
    """What Python waits for: threads that are no daemons, and then its exit hooks."""
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    names = ", ".join(f"'{thread.name}'" for thread in others)
    if not others:
        return "an exit hook (atexit) of the environment or of a library"
    return f"thread{'s' if len(others) > 1 else ''} {names} of the environment or of a library"
