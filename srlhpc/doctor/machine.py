"""Facts about the machine that this process runs on: no MPI, no torch."""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import srlhpc
from srlhpc.ranks.coordinator import library_versions
from srlhpc.runs.shared_memory import FOLDER


def machine_facts(folder: Path, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What the rules of `machine_rules` need.

    Args:
        folder: where runs lie, to compare its clock with this machine's.
        environment: of this process.
    """
    return {
        "host": socket.gethostname(),
        "cpus": os.cpu_count() or 1,
        "interpreter": sys.executable,
        "python": platform.python_version(),
        "versions": library_versions(),
        "code": code_digest(Path(srlhpc.__file__).parent),
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "open_files_most": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "shared_memory": _shared_memory(),
        "against_folder_seconds": _against_folder(folder),
        # Set by `srun_step` where MPI must not share memory within a node.
        "keeps_to_itself": environment.get("MPIR_CVAR_NOLOCAL") == "1",
    }


def code_digest(package: Path) -> str:
    """Equal where the same code is installed."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _shared_memory() -> dict[str, int] | None:
    try:
        facts = os.statvfs(FOLDER)
    except OSError:
        return None
    return {"size": facts.f_blocks * facts.f_frsize, "free": facts.f_bavail * facts.f_frsize}


def _against_folder(folder: Path) -> float | None:
    """This machine's time minus that of the file server, by a file made just now."""
    path = folder / f".clock-{socket.gethostname()}-{os.getpid()}"
    try:
        before = time.time()
        path.write_bytes(b"")
        made = path.stat().st_mtime
        after = time.time()
        path.unlink()
    except OSError:
        return None
    # File systems round down, some to whole ticks of the kernel.
    return before - made if made < before else min(0.0, after - made)
