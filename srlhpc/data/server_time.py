"""Ages by the clock of the file server: the clocks of two hosts may differ by minutes, one server's has one time."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path


def age(path: Path) -> float | None:
    """Seconds since a file was written, by the clock that stamps files there; None if there is no such file.

    Who may not write beside it, or finds the disk full, compares with the clock of this host.
    """
    try:
        written = os.stat(path).st_mtime
    except OSError:
        return None
    return max(0.0, _now(path.parent) - written)


def _now(folder: Path) -> float:
    probe = folder / f".clock.{socket.gethostname()}.{os.getpid()}"
    try:
        probe.touch()
        try:
            return os.stat(probe).st_mtime
        finally:
            probe.unlink()
    except OSError:
        return time.time()
