"""Files in /dev/shm that MPI makes for an attempt, and their removal when everything is killed while it starts.

MPICH (4 and 5) makes `mpich_shm_HASH_NODE` and `mpich_vci_HASH_NODE`, where HASH is the 32-bit FNV-1a hash of the name
of its key-value space. A rank asks its process manager for that name and writes the files' names down before they
exist; `comm/mpi/world.py` unlinks them right after MPI_Init, and Open MPI's `sm_segment.HOST.USER.JOB.RANK` too. MPICH
and UCX also make files with random names, which live for some milliseconds of the start. What a kill then leaves of
those and of Open MPI's is known by name, owner, time, and that nobody uses it.
"""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path

from srlhpc.data.atomic import read_json, write_atomically
from srlhpc.errors import UserError
from srlhpc.runs.lease import put_away_dead, read_lease
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.processes import FLAVOUR_VARIABLE, is_used, kill_processes_of
from srlhpc.specs.patience import START_SECONDS

SHARED_MEMORY = "/dev/shm"
"""Where MPI and srlhpc share memory within a node."""


FOLDER = Path(SHARED_MEMORY)
_RANDOM_PATTERNS = ("mpich_shar_tmp*", "ucx_shm_posix_*", "sm_segment.*")
_GRACE_SECONDS = 300.0
"""Added to what the start may take: ranks that wait for others give up later than those began."""
_PATTERNS = ("mpich_shm_{:x}_{}", "mpich_vci_{:x}_{}")


def write_down_names(attempt: AttemptPaths) -> None:
    """Writes down what MPICH will make. Every rank calls it, before MPI_Init, since any of them may make the files.

    Only MPICH's own mpiexec is asked: others use the same variables and speak another protocol.
    """
    descriptor = os.environ.get("PMI_FD")
    if os.environ.get(FLAVOUR_VARIABLE) != "mpich" or descriptor is None or attempt.shared_memory.exists():
        return
    space = _key_value_space(int(descriptor))
    if space:
        write_atomically(attempt.shared_memory, "".join(f"{name}\n" for name in mpich_names(space)).encode())


def mpich_names(space: bytes, node: str = "0") -> list[str]:
    """Files of MPICH.

    Args:
        space: name of the key-value space.
        node: number of the node.
    """
    return [pattern.format(_fnv1a(space), node) for pattern in _PATTERNS]


def remove_leftovers(attempt: AttemptPaths) -> list[Path]:
    """Removes the files of an attempt whose processes are gone; returns them."""
    removed = []
    for path in (*_written_down(attempt), *_of_the_start(attempt)):
        if path.exists() and not is_used(path):
            path.unlink(missing_ok=True)
            removed.append(path)
    attempt.shared_memory.unlink(missing_ok=True)
    return removed


def _written_down(attempt: AttemptPaths) -> list[Path]:
    try:
        names = attempt.shared_memory.read_text().split()
    except OSError:
        return []
    return [FOLDER / name for name in names if "/" not in name]


def _of_the_start(attempt: AttemptPaths) -> list[Path]:
    """Files with random names of this user, from the time of the attempt's start, if it never got beyond that."""
    status = read_json(attempt.folder.parent.parent / "status.json") or {}
    described = read_json(attempt.attempt) or {}
    started = described.get("time")
    if started is None or (status.get("attempt") == attempt.number and status.get("phase") != "starting"):
        return []
    longest = float(described.get("start_seconds", START_SECONDS)) + _GRACE_SECONDS
    found = []
    for path in (path for pattern in _RANDOM_PATTERNS for path in FOLDER.glob(pattern)):
        with contextlib.suppress(FileNotFoundError):
            facts = path.stat()
            if facts.st_uid == os.getuid() and 0.0 <= facts.st_mtime - started <= longest:
                found.append(path)
    return found


def sweep(root: Path) -> None:
    """Ends and removes what killed runs left on this host: processes and files in /dev/shm, and only theirs."""
    for path in root.glob("*/lease.json"):
        holder = read_lease(path)
        if holder and holder.process.is_here and not holder.process.is_alive():
            attempt = RunPaths(path.parent).attempt(holder.attempt)
            kill_processes_of(attempt.folder)
            remove_leftovers(attempt)
            # So that it is not looked at again; if somebody has taken it over meanwhile, it stays.
            with contextlib.suppress(UserError):
                put_away_dead(path)


def _key_value_space(descriptor: int, wait_seconds: float = 5.0) -> bytes:
    """Asks Hydra, in the words of PMI 1; empty if it does not answer so."""
    os.write(descriptor, b"cmd=get_my_kvsname\n")
    answer = b""
    while not answer.endswith(b"\n") and select.select([descriptor], [], [], wait_seconds)[0]:
        part = os.read(descriptor, 1024)
        if not part:
            break
        answer += part
    words = dict(word.partition(b"=")[::2] for word in answer.split())
    return words.get(b"kvsname", b"")


def _fnv1a(content: bytes) -> int:
    value = 2166136261
    for byte in content:
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value
