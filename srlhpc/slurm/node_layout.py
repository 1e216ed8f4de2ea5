"""How ranks lie on nodes of one type: on as few as hold them, or on as many as the profile sets. Pure.

Ranks of a node share its CPUs, so a trainer with eight threads and seven actors are eight tasks of two CPUs.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from srlhpc.errors import UserError, counted
from srlhpc.plan.plan import RankPlan
from srlhpc.slurm.allocation import Component, Option
from srlhpc.slurm.gpu_shares import gpus_of_node
from srlhpc.specs.cluster import ClusterProfile, PartitionFacts, RoleResources


class PlacedRank(NamedTuple):
    """A rank and what it gets."""

    rank: RankPlan
    role: str
    """Whose entry of the profile holds."""
    wants: RoleResources
    cpus: int

    @property
    def gpus(self) -> float:
        return self.wants.gpus_per_rank


def nodes_set(group: Sequence[PlacedRank]) -> int | None:
    """Nodes that the profile sets."""
    return max((entry.wants.nodes for entry in group if entry.wants.nodes), default=None)


class _Node(NamedTuple):
    """What the fullest node of a component gives."""

    tasks: tuple[int, ...]
    cpus_per_task: int
    gpus: int
    memory_mb: int

    def fits(self, facts: PartitionFacts) -> bool:
        pairs = (
            (self.tasks[0] * self.cpus_per_task, facts.cpus_per_node),
            (self.gpus, facts.gpus_per_node),
            (self.memory_mb, facts.memory_mb_per_node),
            (len(self.tasks), facts.nodes),
        )
        return all(most is None or wanted <= most for wanted, most in pairs)


def _blocks(group: Sequence[PlacedRank], nodes: int) -> list[Sequence[PlacedRank]]:
    """Ranks node by node, in even blocks."""
    each, more = divmod(len(group), nodes)
    starts = [node * each + min(node, more) for node in range(nodes + 1)]
    return [group[start:end] for start, end in itertools.pairwise(starts)]


def _spread(group: Sequence[PlacedRank], nodes: int) -> _Node:
    blocks = _blocks(group, nodes)
    # sbatch takes one number of CPUs for all tasks of a component: times the tasks of a node it must give their sum.
    return _Node(
        tuple(len(block) for block in blocks),
        max(math.ceil(sum(entry.cpus for entry in block) / len(block)) for block in blocks),
        max(gpus_of_node([entry.gpus for entry in block]) for block in blocks),
        max(sum(entry.wants.memory_mb_per_rank or 0 for entry in block) for block in blocks),
    )


def fits(group: Sequence[PlacedRank], nodes: int, cluster: ClusterProfile) -> bool:
    """Whether so many nodes hold the ranks, as far as the profile knows the nodes of the partition."""
    most = {entry.role: entry.wants.ranks_per_node for entry in group}
    is_crowded = any(
        count > (most[role] or count)
        for block in _blocks(group, nodes)
        for role, count in Counter(entry.role for entry in block).items()
    )
    return not is_crowded and _spread(group, nodes).fits(cluster.facts(group[0].wants.partition))


def _numbers_of_nodes(group: Sequence[PlacedRank], cluster: ClusterProfile) -> range:
    """Numbers of nodes that are worth a try. Those that cannot do however the ranks lie are left out, since a try takes
    its time with thousands of ranks."""
    facts = cluster.facts(group[0].wants.partition)
    needs = [
        (sum(entry.cpus for entry in group), facts.cpus_per_node),
        (sum(entry.wants.memory_mb_per_rank or 0 for entry in group), facts.memory_mb_per_node),
    ]
    most = {entry.role: entry.wants.ranks_per_node for entry in group}
    needs += [(count, most[role]) for role, count in Counter(entry.role for entry in group).items()]
    fewest = max([1, *(-(-needed // given) for needed, given in needs if given)])
    return range(fewest, min(len(group), facts.nodes or len(group)) + 1)


def lay_out(group: Sequence[PlacedRank], cluster: ClusterProfile) -> Component:
    """The component of ranks on one type of node, on the fewest nodes that hold them unless the profile sets a number.

    Raises:
        UserError: no number of nodes will do, or only some of the ranks have their memory set.
    """
    _check_memory(group)
    wanted = nodes_set(group)
    role = group[-1].role
    if wanted is not None and wanted > len(group):
        ranks = counted(len(group), "rank")
        raise UserError(f"roles.{role}.nodes: is {wanted}, for {ranks}; a node must have at least one")
    candidates = _numbers_of_nodes(group, cluster) if wanted is None else (wanted,)
    nodes = next((count for count in candidates if fits(group, count, cluster)), None)
    if nodes is None:
        raise UserError(_too_full(group, cluster, wanted))
    # Partition, account and other options of whole nodes are equal within a group.
    node, wants, facts = _spread(group, nodes), group[0].wants, cluster.facts(group[0].wants.partition)
    cpus = node.cpus_per_task * len(group)
    # Whole nodes are paid for, with the CPUs that no task uses.
    if wants.exclusive and facts.cpus_per_node:
        cpus = facts.cpus_per_node * nodes
    gpu_type = next((entry.wants.gpu_type for entry in group if entry.gpus), None)
    return Component(
        _options(wants, node, gpu_type, cluster),
        group[0].rank.rank,
        len(group),
        nodes,
        node.tasks,
        cpus,
        node.gpus * nodes,
        tuple(entry.gpus for entry in group),
        tuple(entry.cpus for entry in group),
    )


def _options(wants: RoleResources, node: _Node, gpu_type: str | None, cluster: ClusterProfile) -> dict[str, Option]:
    options: dict[str, Option | None] = {
        "partition": wants.partition,
        "account": wants.account,
        "qos": wants.qos,
        "constraint": wants.constraint,
        "nodes": len(node.tasks),
        "ntasks": sum(node.tasks),
        # Beside ntasks, Slurm takes this as the most that a node may have. The first node is never less full.
        "ntasks-per-node": node.tasks[0],
        "cpus-per-task": node.cpus_per_task,
        "gpus-per-node": (f"{gpu_type}:" if gpu_type else "") + str(node.gpus) if node.gpus else None,
        "mem": f"{node.memory_mb}M" if node.memory_mb else None,
        "exclusive": True if wants.exclusive else None,
        # Last, so that what the profile names outright wins.
        **cluster.sbatch,
    }
    return {name: value for name, value in options.items() if value is not None}


def _check_memory(group: Sequence[PlacedRank]) -> None:
    without = [entry.role for entry in group if entry.wants.memory_mb_per_rank is None]
    if without and len(without) < len(group):
        raise UserError(
            f"roles.{without[0]}.memory_mb_per_rank: is not set, but other roles on these nodes set theirs; "
            "memory is asked for by node, so set it for all of them or for none (`default` sets it for all)"
        )


def _too_full(group: Sequence[PlacedRank], cluster: ClusterProfile, wanted: int | None) -> str:
    partition = group[0].wants.partition
    facts = cluster.facts(partition)
    if facts.gpus_per_node == 0 and any(entry.gpus for entry in group):
        role = next(entry.role for entry in group if entry.gpus)
        return f"roles.{role}.partition: is '{partition}', whose nodes have no GPUs, but {role} needs one a rank"
    counts = Counter(entry.role for entry in group)
    node = _spread(group, wanted or min(facts.nodes or len(group), len(group)))
    have = {"CPUs": facts.cpus_per_node, "GPUs": facts.gpus_per_node, "MB": facts.memory_mb_per_node}
    known = ", ".join(f"{count} {unit}" for unit, count in have.items() if count is not None)
    where = f"partition {partition}" if partition else "the default partition"
    return (
        f"roles.{group[-1].role}: cannot place {counted(len(group), 'rank')} "
        f"({', '.join(f'{n} {role}' for role, n in counts.items())}) on {counted(len(node.tasks), 'node')} of {where}: "
        f"the fullest would need {counted(node.tasks[0], 'task')} of {counted(node.cpus_per_task, 'CPU')}, "
        f"{counted(node.gpus, 'GPU')} and {node.memory_mb} MB"
        + (f", a node has {known}" if known else "")
        + "; ask for fewer ranks, or correct nodes, ranks_per_node, cpus_per_rank or partitions in the profile"
    )
