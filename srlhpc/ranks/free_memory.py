"""Memory that is free for this process: on its node, and in the control groups that Slurm has put it into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

_RANK_BYTES, _TORCH_RANK_BYTES = 64 << 20, 256 << 20
"""What a rank may take that has loaded everything and made nothing: measured are 30 to 60 and 140 to 230 MB."""
_RESERVE_BYTES = 512 << 20
"""Bytes left to the ranks that train: a new simulator, a checkpoint that is put together."""


def room_for(beside: Sequence[bool]) -> int:
    """Bytes that must be free for ranks to stand by on a node: for those that begin to, and a reserve.

    Args:
        beside: for each rank that begins, whether it needs torch.
    """
    return _RESERVE_BYTES + sum(_TORCH_RANK_BYTES if needs_torch else _RANK_BYTES for needs_torch in beside)


def free_bytes(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """The least that is free: on the node, or below any limit that this process is under."""
    return min([_free_on_node(proc), *_free_in_groups(proc, groups)])


def _free_on_node(proc: Path) -> int:
    for line in (proc / "meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            # In kB, which are 1024 bytes here.
            return int(line.split()[1]) << 10
    raise AssertionError(f"{proc}/meminfo has no MemAvailable")


def _free_in_groups(proc: Path, root: Path) -> Iterator[int]:
    """What is free in each group with a limit, from the process's own upwards."""
    file = proc / "self" / "cgroup"
    for line in file.read_text().splitlines() if file.exists() else ():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, names = root, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            top, names = root / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        folder = top / path.lstrip("/")
        for group in (folder, *folder.parents):
            if not group.is_relative_to(top):
                break
            if (free := _free_in_group(group, *names)) is not None:
                yield free


def _free_in_group(group: Path, limit: str, usage: str, reclaimable: str) -> int | None:
    """Bytes that are free in a control group; None if it has no limit."""
    try:
        most, used = (group / limit).read_text().strip(), int((group / usage).read_text())
        counts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    # Pages of files that were not used lately are given up before anything is killed.
    return None if most == "max" else int(most) - used + int(counts.get(reclaimable, 0))
