"""When a job can start: what all its parts need at once, against the nodes that there are and that are free. Pure.

Slurm's own estimate (`sbatch --test-only`) of a heterogeneous job looks at each part by itself. It starts them
together, and its backfill scheduler puts each on nodes of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from srlhpc.errors import counted
from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.slurm.partitions import NodeState

_MOST_PARTS = 8
"""Most components whose every combination is looked at; of more, only all of them together."""


def shortage(allocation: Allocation, nodes: Sequence[NodeState]) -> str | None:
    """Why a heterogeneous job can never start, with arithmetic; None if it can, or has one part.

    Args:
        allocation: what the job asks for.
        nodes: of all partitions, whether or not they are up.
    """
    parts = allocation.components
    sizes = range(2, len(parts) + 1) if len(parts) <= _MOST_PARTS else [len(parts)]
    for chosen in (chosen for size in sizes for chosen in itertools.combinations(parts, size)):
        able = {name for part in chosen for name in _able(part, nodes, _has)}
        needed = sum(part.nodes for part in chosen)
        if len(able) < needed and all(_able(part, nodes, _has) for part in chosen):
            return (
                f"the job needs {counted(needed, 'node')} at once ({_needs(chosen)}), since the parts of a "
                f"heterogeneous job do not share nodes, but only {len(able)} can serve them ({', '.join(sorted(able))})"
            )
    return None


def outlook(allocation: Allocation, nodes: Sequence[NodeState]) -> str:
    """What a job waits for, and how much of it is free now."""
    parts = allocation.components
    free = " and ".join(f"{len(_able(part, nodes, _has_free))} of {_where(part)}" for part in parts)
    together = " at once" if len(parts) > 1 else ""
    return f"needs {_needs(parts)}{together}; such nodes free now: {free}"


def _needs(parts: Iterable[Component]) -> str:
    return " and ".join(
        f"{counted(part.nodes, 'node')} of {_where(part)} with {counted(max(part.tasks) * _cpus(part), 'CPU')}"
        + (f" and {counted(part.gpus // part.nodes, 'GPU')}" if part.gpus else "")
        for part in parts
    )


def _where(part: Component) -> str:
    return f"partition {part.options['partition']}" if "partition" in part.options else "the default partition"


def _cpus(part: Component) -> int:
    return int(part.options.get("cpus-per-task", 1))


def _able(part: Component, nodes: Iterable[NodeState], can: Callable[[NodeState, int, int], bool]) -> set[str]:
    """Names of the nodes that can take a node's share of a part."""
    partitions = str(part.options.get("partition", "")).split(",")
    cpus, gpus = max(part.tasks) * _cpus(part), part.gpus // part.nodes
    return {
        node.name
        for node in nodes
        if (node.partition in partitions or (partitions == [""] and node.is_default)) and can(node, cpus, gpus)
    }


def _has(node: NodeState, cpus: int, gpus: int) -> bool:
    return node.cpus >= cpus and sum(node.gpus.values()) >= gpus


def _has_free(node: NodeState, cpus: int, gpus: int) -> bool:
    return node.is_up and node.idle_cpus >= cpus and sum(node.gpus.values()) - node.used_gpus >= gpus
