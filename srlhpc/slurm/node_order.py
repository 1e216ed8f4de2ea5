"""The order of a heterogeneous job's components under Slurm's PMIx.

For a step over several components Slurm's PMIx plugin (seen in 22.05) lists the nodes by name, but numbers them by
component. Where the two orders differ, ranks are told of wrong neighbours, and MPI_Init fails or hangs. So the
components are put into the order of their nodes' names when the job is submitted, and ranks keep their numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from srlhpc.errors import ClusterError
from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.commands import run_slurm
from srlhpc.slurm.partitions import NodeState, read_nodes
from srlhpc.specs.cluster import ClusterProfile


def in_node_order(allocation: Allocation, cluster: ClusterProfile) -> Allocation:
    """The components in the order of their nodes' names, if the job's MPI needs that and Slurm answers."""
    plugin = cluster.srun_mpi or {"openmpi": "pmix"}.get(cluster.mpi, "")
    if len(allocation.components) < 2 or not plugin.startswith("pmix"):
        return allocation
    try:
        return sorted_by_nodes(allocation, read_nodes())
    except ClusterError:
        return allocation


def sorted_by_nodes(allocation: Allocation, nodes: Iterable[NodeState]) -> Allocation:
    """The components by the first node of their partitions; as they are, if a partition has none."""
    first: dict[str, tuple[str, int]] = {}
    for node in nodes:
        for partition in (node.partition, *([""] if node.is_default else [])):
            first[partition] = min(first.get(partition, by_name(node.name)), by_name(node.name))
    places = [str(component.options.get("partition", "")).split(",") for component in allocation.components]
    if any(partition not in first for partitions in places for partition in partitions):
        return allocation
    order = sorted(range(len(places)), key=lambda n: min(first[partition] for partition in places[n]))
    return replace(allocation, components=tuple(allocation.components[number] for number in order))


def nodes_of_components(environment: Mapping[str, str]) -> list[list[str]]:
    """The nodes of each component of the heterogeneous job that this process is in; empty in any other job."""
    lists: list[list[str]] = []
    while nodes := environment.get(f"SLURM_JOB_NODELIST_HET_GROUP_{len(lists)}"):
        lists.append(run_slurm(["scontrol", "show", "hostnames", nodes]).stdout.split())
    return lists


def order_warning(plugin: str, nodes: Sequence[Sequence[str]]) -> str | None:
    """What is wrong with the order in which a job's components have got their nodes, or None."""
    names = [name for component in nodes for name in component]
    if not plugin.startswith("pmix") or names == sorted(names, key=by_name):
        return None
    return (
        f"warning: the nodes of the job's components ({', '.join(names)}) are not in the order of their names, which "
        "Slurm's PMIx may need; if the ranks do not start: write `mpi: openmpi` into the cluster profile and submit "
        "again, use MPICH, or name partitions whose nodes are not mixed"
    )


def by_name(node: str) -> tuple[str, int]:
    """Sorts node names as Slurm does: by the letters, then by the number behind them."""
    name = node.rstrip("0123456789")
    # A name without a number comes before those with one.
    return name, int(node[len(name) :] or -1)
