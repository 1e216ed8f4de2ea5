"""Processes that must not outlive the one that started them (Linux, from /proc)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Asks the kernel to kill this process when the thread that forked it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def all_pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def children() -> set[int]:
    """Processes that this one has started or forked and that have not been waited for, zombies included."""
    parent = f"\nPPid:\t{os.getpid()}\n"
    return {pid for pid in all_pids() if parent in _status(pid)}


def marked(variable: str, value: str) -> list[int]:
    """Processes of this host that have an environment variable of that value, this one excepted.

    All descendants inherit it, those in sessions of their own included.
    """
    mark = f"{variable}={value}".encode()
    return [pid for pid in all_pids() if pid != os.getpid() and mark in _environment(pid)]


def kill_marked(variable: str, value: str, within_seconds: float = 5.0) -> list[int]:
    """Kills them all; returns what could not be killed in that time."""
    limit = time.monotonic() + within_seconds
    while remaining := marked(variable, value):
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > limit:
            return remaining
        time.sleep(0.005)
    return []


def _environment(pid: int) -> list[bytes]:
    try:
        # Empty for a zombie, refused for another user's process.
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return ""
