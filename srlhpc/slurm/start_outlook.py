"""When a job can start: what all its components need at once, against the nodes that there are and that are free. Pure.

Slurm's own estimate (`sbatch --test-only`) of a heterogeneous job looks at each component by itself. It starts them
together, and its backfill scheduler puts each on nodes of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from srlhpc.errors import counted
from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.slurm.partitions import NodeState

_MOST_COMPONENTS = 8
"""Most components whose every combination is looked at; of more, only all of them together."""


def shortage(allocation: Allocation, nodes: Sequence[NodeState]) -> str | None:
    """Why a heterogeneous job can never start, with arithmetic; None if it can, or has one component.

    Args:
        allocation: what the job asks for.
        nodes: of all partitions, whether or not they are up.
    """
    components = allocation.components
    sizes = range(2, len(components) + 1) if len(components) <= _MOST_COMPONENTS else [len(components)]
    # Hall: all components find nodes of their own exactly if those of every choice have enough nodes together.
    for chosen in (chosen for size in sizes for chosen in itertools.combinations(components, size)):
        able = {name for component in chosen for name in _able(component, nodes, _has)}
        needed = sum(component.nodes for component in chosen)
        if len(able) < needed and all(_able(component, nodes, _has) for component in chosen):
            return (
                f"the job needs {counted(needed, 'node')} at once ({_needs(chosen)}), since the components of a "
                f"heterogeneous job do not share nodes, but only {len(able)} can serve them ({', '.join(sorted(able))})"
            )
    return None


def outlook(allocation: Allocation, nodes: Sequence[NodeState]) -> str:
    """What a job waits for, and how much of it is free now."""
    components = allocation.components
    free = " and ".join(f"{len(_able(component, nodes, _has_free))} of {_where(component)}" for component in components)
    together = " at once" if len(components) > 1 else ""
    return f"needs {_needs(components)}{together}; such nodes free now: {free}"


def _needs(components: Iterable[Component]) -> str:
    return " and ".join(
        f"{counted(component.nodes, 'node')} of {_where(component)} "
        f"with {counted(max(component.tasks) * _cpus(component), 'CPU')}"
        + (f" and {counted(component.gpus // component.nodes, 'GPU')}" if component.gpus else "")
        for component in components
    )


def _where(component: Component) -> str:
    return (
        f"partition {component.options['partition']}" if "partition" in component.options else "the default partition"
    )


def _cpus(component: Component) -> int:
    return int(component.options.get("cpus-per-task", 1))


def _able(component: Component, nodes: Iterable[NodeState], can: Callable[[NodeState, int, int], bool]) -> set[str]:
    """Names of the nodes that can take a node's share of a component."""
    partitions = str(component.options.get("partition", "")).split(",")
    cpus, gpus = max(component.tasks) * _cpus(component), component.gpus // component.nodes
    return {
        node.name
        for node in nodes
        if (node.partition in partitions or (partitions == [""] and node.is_default)) and can(node, cpus, gpus)
    }


def _has(node: NodeState, cpus: int, gpus: int) -> bool:
    return node.cpus >= cpus and sum(node.gpus.values()) >= gpus


def _has_free(node: NodeState, cpus: int, gpus: int) -> bool:
    return node.is_up and node.idle_cpus >= cpus and sum(node.gpus.values()) - node.used_gpus >= gpus
