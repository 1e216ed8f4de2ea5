"""CPU time and memory of processes (Linux, from /proc)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """The process and everything below it."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))):
            children.setdefault(int(fields[1]), []).append(int(name))
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue.extend(children.get(pid, []))
    return found


def cpu_seconds(pid: int) -> float:
    """User and system seconds of a process; 0 if it has gone."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def pss_bytes(pids: Iterable[int]) -> int:
    """Sum of the proportional set sizes: memory that processes share is counted once."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def variable_of(pid: int, name: str) -> str | None:
    """An environment variable that a process was started with."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    start = f"{name}=".encode()
    return next((text[len(start) :].decode() for text in variables if text.startswith(start)), None)


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
