"""Files in /dev/shm that MPI makes for an attempt: their names are written down before they exist.

The ranks unlink them right after MPI_Init (`comm/mpi.py`). When everything is killed in between, one stays; the next
command finds its name here and removes it. MPICH (4 and 5) calls them `mpich_shm_HASH_NODE` and `mpich_vci_HASH_NODE`,
where HASH is the 32-bit FNV-1a hash of the name of its key-value space, which a rank can ask its process manager for.
"""

from __future__ import annotations

import os
import select
from pathlib import Path

from srlhpc.launch.lease import read_lease
from srlhpc.launch.processes import is_mapped, kill_processes_of
from srlhpc.launch.rundir import AttemptPaths, RunPaths

FOLDER = Path("/dev/shm")
_PATTERNS = ("mpich_shm_{}_0", "mpich_vci_{}_0")


def write_down_names(attempt: AttemptPaths) -> None:
    """Writes down what MPICH will make. Every rank may call it, before MPI_Init; rank 0 does it, others do nothing."""
    descriptor = os.environ.get("PMI_FD")
    if os.environ.get("PMI_RANK") != "0" or descriptor is None:
        return
    space = _key_value_space(int(descriptor))
    if space:
        names = [pattern.format(f"{_fnv1a(space):x}") for pattern in _PATTERNS]
        attempt.shared_memory.write_text("".join(f"{name}\n" for name in names))


def remove_leftovers(attempt: AttemptPaths) -> list[Path]:
    """Removes the files of an attempt whose processes are gone; returns them."""
    try:
        names = attempt.shared_memory.read_text().split()
    except OSError:
        return []
    removed = []
    for path in (FOLDER / name for name in names if "/" not in name):
        if path.exists() and not is_mapped(path):
            path.unlink(missing_ok=True)
            removed.append(path)
    attempt.shared_memory.unlink(missing_ok=True)
    return removed


def sweep(root: Path) -> None:
    """Ends and removes what killed runs left on this host: processes and files in /dev/shm, and only theirs."""
    for path in root.glob("*/lease.json"):
        holder = read_lease(path)
        if holder and holder.process.is_here and not holder.process.is_alive():
            attempt = RunPaths(path.parent).attempt(holder.attempt)
            kill_processes_of(attempt.folder)
            remove_leftovers(attempt)


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
