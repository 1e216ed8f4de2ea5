"""What Slurm says of its partitions: for a first profile, and for what is free now."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from srlhpc.slurm.commands import run_slurm
from srlhpc.slurm.time_limit import slurm_minutes

_FIELDS = {
    "Partition": 128,
    "NodeHost": 256,
    "StateCompact": 32,
    "CPUsState": 64,
    "Memory": 32,
    "Time": 32,
    "Gres": 512,
    "GresUsed": 512,
}
_UP = ("idle", "mix", "alloc", "comp")


@dataclass(frozen=True)
class NodeState:
    """One node in one partition."""

    partition: str
    is_default: bool
    name: str
    state: str
    cpus: int
    idle_cpus: int
    memory_mb: int
    max_minutes: int | None
    """Longest time limit; None: no limit."""
    gpus: dict[str, int]
    """GPUs by type; '' where Slurm names none."""
    used_gpus: int

    @property
    def is_up(self) -> bool:
        # Marks: * does not answer, ~ is powered down, # powers up, $ is under maintenance, @ is to reboot.
        return self.state.startswith(_UP) and not self.state.endswith(("*", "~", "#", "$", "@"))


def read_nodes() -> list[NodeState]:
    """Every node of every partition.

    Raises:
        ClusterError: there is no Slurm, or it does not answer.
    """
    wanted = ",".join(f"{name}:{width}" for name, width in _FIELDS.items())
    return parse_nodes(run_slurm(["sinfo", "--noheader", "--Node", "-O", wanted]).stdout)


def parse_nodes(text: str) -> list[NodeState]:
    """The nodes in what `sinfo --Node -O` has printed; columns have fixed widths."""
    found = []
    for line in filter(str.strip, text.splitlines()):
        values: dict[str, str] = {}
        start = 0
        for name, width in _FIELDS.items():
            values[name] = line[start : start + width].strip()
            start += width
        # Allocated, idle, other, total.
        _, idle, _, total = (int(part) for part in values["CPUsState"].split("/"))
        found.append(
            NodeState(
                values["Partition"].rstrip("*"),
                values["Partition"].endswith("*"),
                values["NodeHost"],
                values["StateCompact"],
                total,
                idle,
                int(values["Memory"]),
                slurm_minutes(values["Time"]),
                parse_gpus(values["Gres"]),
                sum(parse_gpus(values["GresUsed"]).values()),
            )
        )
    return found


def parse_gpus(gres: str) -> dict[str, int]:
    """GPUs by type in generic resources such as `gpu:a100:4(S:0-1),shard:8`."""
    gpus: dict[str, int] = {}
    for match in re.finditer(r"(?:^|,)gpu(?::([A-Za-z][\w.-]*|\(null\)))?(?::([0-9]+))?(?=[,(]|$)", gres):
        kind = "" if match[1] in (None, "(null)") else match[1]
        gpus[kind] = gpus.get(kind, 0) + int(match[2] or 1)
    return gpus


def by_partition(nodes: Iterable[NodeState]) -> dict[str, list[NodeState]]:
    """Nodes by partition, in Slurm's order."""
    found: dict[str, list[NodeState]] = {}
    for node in nodes:
        found.setdefault(node.partition, []).append(node)
    return found


def free_table(nodes: Iterable[NodeState]) -> list[str]:
    """A line a partition: nodes that are up, CPUs and GPUs that are free there, longest time."""
    rows = [("partition", "nodes up", "CPUs free", "GPUs free", "longest job")]
    for name, members in by_partition(nodes).items():
        up = [node for node in members if node.is_up]
        free = sum(max(0, sum(node.gpus.values()) - node.used_gpus) for node in up)
        limit = members[0].max_minutes
        rows.append(
            (
                name + "*" * members[0].is_default,
                f"{len(up)}/{len(members)}",
                f"{sum(node.idle_cpus for node in up)}/{sum(node.cpus for node in members)}",
                f"{free}/{sum(sum(node.gpus.values()) for node in members)}",
                "no limit" if limit is None else f"{limit / 60:g} h",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
