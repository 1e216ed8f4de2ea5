"""Processes of this host: who is alive, and which belong to an attempt (Linux, from /proc)."""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import read_json
from srlhpc.runs.paths import AttemptPaths
from srlhpc.specs.child_processes import all_pids, kill_marked, marked

FLAVOUR_VARIABLE = "SRLHPC_MPIEXEC"
"""Environment variable that tells a rank whose mpiexec has started it; not set under another launcher."""

RANK_VARIABLE = "SRLHPC_RANK"
"""Environment variable with the number of a rank in the plan."""

STEP_VARIABLE = "SRLHPC_STEP"
"""Environment variable that tells a rank that srun has started it."""

FORK_SERVER_VARIABLE = "SRLHPC_FORK_SERVER"
"""Environment variable that names the fork server that a process was forked by; the kernel shows of such a process the
environment that the fork server began with."""

STANDBY = "standby"
"""What the program of a rank is given behind its attempt's number if it is to load everything and wait."""


ATTEMPT_VARIABLE = "SRLHPC_ATTEMPT"
"""Environment variable with the folder of the attempt; every process of it inherits it, and nobody else has it."""


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that no later process can be taken for."""

    host: str
    pid: int
    started: str
    """Boot of the host and start time since then."""

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """The identity of a process of this host; None if there is none or it is a zombie."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return None
        # The command's name, in parentheses, may itself have spaces and parentheses.
        fields = stat[stat.rindex(")") + 2 :].split()
        if fields[0] in "ZX":
            return None
        # Field 22 of stat, in ticks since the boot; the first two are cut off.
        return cls(socket.gethostname(), pid, f"{boot}:{fields[19]}")

    @classmethod
    def own(cls) -> ProcessIdentity:
        identity = cls.of(os.getpid())
        assert identity, "/proc is not mounted"
        return identity

    @classmethod
    def from_json(cls, content: Any) -> ProcessIdentity | None:
        try:
            return cls(str(content["host"]), int(content["pid"]), str(content["started"]))
        except (KeyError, TypeError, ValueError):
            return None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_here(self) -> bool:
        return self.host == socket.gethostname()

    def is_alive(self) -> bool:
        """Whether it still runs. Only its own host can tell."""
        return ProcessIdentity.of(self.pid) == self


def processes_of(attempt: Path) -> list[int]:
    """Processes of this host that were started for an attempt, this one excepted."""
    return [pid for mark in _marks(attempt) for pid in marked(*mark)]


def kill_processes_of(attempt: Path, within_seconds: float = 5.0) -> list[int]:
    """Kills what still runs of an attempt; returns what could not be killed in that time."""
    return [pid for mark in _marks(attempt) for pid in kill_marked(*mark, within_seconds)]


def _marks(attempt: Path) -> list[tuple[str, str]]:
    """Environment variables that only processes of an attempt have, with their values."""
    token = (read_json(AttemptPaths(attempt).attempt) or {}).get("fork_server")
    return [(ATTEMPT_VARIABLE, str(attempt)), *([(FORK_SERVER_VARIABLE, token)] if isinstance(token, str) else [])]


def is_used(path: Path) -> bool:
    """Whether a live process of this user has a file open or in its memory."""
    wanted = f" {path}\n".encode()
    for pid in all_pids():
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{pid}/maps").read_bytes() or str(path) in _open_files(pid):
                return True
    return False


def _open_files(pid: int) -> list[str]:
    found = []
    for descriptor in os.scandir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(descriptor.path))
    return found
