"""From a plan and a cluster profile to what Slurm is asked for, or to the reason why it cannot work. Pure.

A component is what one block of sbatch options describes: nodes of one type, alike. Ranks are numbered through the
components in order and lie in blocks on the nodes of each, evenly: of five ranks on two nodes, three are on the first.
Ranks of a node share its CPUs, so a trainer with eight threads and seven actors are eight tasks of two CPUs.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from srlhpc.errors import UserError, counted
from srlhpc.plan.layouts import block_layout
from srlhpc.plan.plan import Plan, RankPlan
from srlhpc.plan.replay_sizes import sent_bytes, shard_blocks, store_bytes
from srlhpc.plan.roles import computing, placed_roles
from srlhpc.plan.sizes import batches_bytes
from srlhpc.slurm.gpu_shares import gpus_of_node
from srlhpc.specs.cluster import ClusterProfile, PartitionFacts, RoleResources
from srlhpc.specs.experiment import ExperimentSpec

Option = str | int | bool
_NO_GPUS = ""
"""Stands for the type of GPU of ranks without GPUs."""


@dataclass(frozen=True)
class Component:
    """Nodes of one type."""

    options: Mapping[str, Option]
    """Options of sbatch by their long names; True: without a value. Time limit, name and signal are not among them."""
    first_rank: int
    ranks: int
    nodes: int
    tasks: tuple[int, ...]
    """Ranks on each node, as Slurm's block distribution puts them."""
    cpus: int
    """CPUs of all nodes together that are paid for."""
    gpus: int
    """GPUs of all nodes together."""
    gpu_shares: tuple[float, ...] = ()
    """GPUs of each rank; 0.5: it shares one."""
    threads: tuple[int, ...] = ()
    """Threads of each rank's libraries: the CPUs that it is to have."""

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Component:
        known: dict[str, Any] = {
            field: tuple(content[field]) if isinstance(content[field], list) else content[field]
            for field in cls.__dataclass_fields__
            if field in content
        }
        return cls(**known)

    def ranks_beside(self, rank: int) -> range:
        """The ranks on a rank's node, itself included."""
        node = self.node_of(rank)
        first = self.first_rank + sum(self.tasks[:node])
        return range(first, first + self.tasks[node])

    def node_of(self, rank: int) -> int:
        """The place of a rank's node among the component's."""
        place = rank - self.first_rank
        for node, count in enumerate(self.tasks):
            if place < count:
                return node
            place -= count
        raise AssertionError(f"rank {rank} is not in the component of rank {self.first_rank}")


@dataclass(frozen=True)
class Allocation:
    """What one job asks for."""

    components: tuple[Component, ...]
    """The batch script runs on the first node of the first. Rank 0, the coordinator, is there too, unless the order
    had to follow the nodes' names, see `node_order`."""
    minutes: int
    """Time limit."""

    @property
    def ranks(self) -> int:
        return sum(component.ranks for component in self.components)

    @property
    def core_hours(self) -> float:
        """CPUs times hours, if the job runs to its time limit."""
        return sum(component.cpus for component in self.components) * self.minutes / 60

    @property
    def gpu_hours(self) -> float:
        """GPUs times hours, if the job runs to its time limit."""
        return sum(component.gpus for component in self.components) * self.minutes / 60

    @property
    def threads(self) -> dict[int, int]:
        """Threads by rank, where they are known."""
        return {
            component.first_rank + place: count
            for component in self.components
            for place, count in enumerate(component.threads)
        }

    def component_of(self, rank: int) -> int:
        """The number of the component that a rank is in."""
        starts = [(component.first_rank, number) for number, component in enumerate(self.components)]
        return max(entry for entry in starts if entry[0] <= rank)[1]

    def to_json(self) -> dict[str, Any]:
        return {
            "components": [asdict(component) for component in self.components],
            "minutes": self.minutes,
            "core_hours": self.core_hours,
            "gpu_hours": self.gpu_hours,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Allocation:
        return cls(tuple(Component.from_json(entry) for entry in content["components"]), int(content["minutes"]))


class _Placed(NamedTuple):
    """A rank and what it gets."""

    rank: RankPlan
    role: str
    """Whose entry of the profile holds."""
    wants: RoleResources
    cpus: int

    @property
    def gpus(self) -> float:
        return self.wants.gpus_per_rank


def allocate(plan: Plan, cluster: ClusterProfile, time_minutes: int) -> Allocation:
    """Works out what to ask Slurm for.

    Args:
        plan: ranks and roles.
        cluster: where roles run.
        time_minutes: the time limit.

    Raises:
        UserError: GPUs are needed and none are given, ranks do not fit, the time is too long or too short; the message
            starts with the path of the profile that it is about.
    """
    _check_trainers_memory(plan, cluster)
    _check_replays_memory(plan, cluster)
    placed = [_place(rank, plan.spec, cluster) for rank in plan.ranks]
    # A coordinator that the profile does not name lies beside the next rank, on nodes alike, and takes no GPU there.
    if placed[0].role not in placed_roles(cluster) and len(placed) > 1:
        own = {"gpus_per_rank": 0.0, "memory_mb_per_rank": placed[0].wants.memory_mb_per_rank, "ranks_per_node": None}
        placed[0] = placed[0]._replace(wants=placed[1].wants.model_copy(update=own))
    _check_time(cluster, time_minutes, [entry.wants.partition for entry in placed])
    return Allocation(tuple(_components(_alike(placed), cluster)), time_minutes)


def _components(groups: Sequence[list[_Placed]], cluster: ClusterProfile) -> list[Component]:
    """Components of ranks on one type of node each.

    Ranks without GPUs are a part of their own where GPUs would lie idle beside them and the partition is known to have
    nodes for both parts: those of a heterogeneous job do not share nodes.
    """
    together = [_whole(group, cluster) for group in groups]
    apart = [_apart(group, whole, cluster) for group, whole in zip(groups, together, strict=True)]
    split = [part for parts in apart for part in parts]
    missing = _missing_nodes(split, cluster)
    # Two components where one would do are right only if the partition is known to have nodes for both.
    if missing is None and all(len(parts) == 1 or cluster.facts(_partition(parts[0])).nodes for parts in apart):
        return split
    merged = [part for parts, whole in zip(apart, together, strict=True) for part in ([whole] if whole else parts)]
    if missing := _missing_nodes(merged, cluster):
        raise UserError(missing)
    return merged


def _whole(group: list[_Placed], cluster: ClusterProfile) -> Component | None:
    """All ranks of a type of node as one component, if that is possible."""
    try:
        return _component(group, cluster)
    except UserError:
        return None


def _apart(group: list[_Placed], whole: Component | None, cluster: ClusterProfile) -> list[Component]:
    """The same as two components, if that saves GPUs.

    Raises:
        UserError: the ranks fit neither so nor so.
    """
    parts = [_component(part, cluster) for part in _without_idle_gpus(group, cluster)]
    return [whole] if whole and whole.gpus <= sum(part.gpus for part in parts) else parts


def _partition(component: Component) -> str | None:
    name = component.options.get("partition")
    return None if name is None else str(name)


def _missing_nodes(components: Sequence[Component], cluster: ClusterProfile) -> str | None:
    """What to say where a job's components need more nodes of a partition than it has; None if they do not."""
    for partition, facts in cluster.partitions.items():
        counts = [component.nodes for component in components if _partition(component) == partition]
        if len(counts) > 1 and facts.nodes is not None and sum(counts) > facts.nodes:
            return (
                f"partitions.{partition}.nodes: is {facts.nodes}, but the job needs {sum(counts)} nodes of it at once "
                f"({' + '.join(map(str, counts))}): the components of a heterogeneous job do not share nodes. Ask for "
                "fewer ranks or CPUs, give roles that may share nodes equal options, or put some into another partition"
            )
    return None


def _check_trainers_memory(plan: Plan, cluster: ClusterProfile) -> None:
    given = cluster.role("trainer").memory_mb_per_rank
    for policy in plan.trained_policies:
        needed = batches_bytes(plan, policy) / 1e6
        if given is not None and needed > given:
            raise UserError(
                f"roles.trainer.memory_mb_per_rank: is {given}, but a trainer of '{policy}' needs {needed:,.0f} MB for "
                "its batches alone; raise it, or lower batch.fragments or batch.queue in the job"
            )


def _check_replays_memory(plan: Plan, cluster: ClusterProfile) -> None:
    """What replay ranks keep; beside trainers also their batches, which lie on the same ranks."""
    for replay in plan.named("replay"):
        policy, host = replay.policy or "", plan.ranks[replay.rank].roles[0].name
        given = cluster.role(host).memory_mb_per_rank
        kept, batches = store_bytes(plan, policy), batches_bytes(plan, policy) if host == "trainer" else 0
        needed = math.ceil((kept + sent_bytes(plan, policy) + batches) / 1e6)
        if given is not None and needed > given:
            blocks, each = shard_blocks(plan, policy), block_layout(plan, policy).size_bytes
            beside = f", with {batches / 1e6:,.0f} MB of batches" if batches else ""
            raise UserError(
                f"roles.{host}.memory_mb_per_rank: is {given}, but {replay.label} needs {needed:,} MB "
                f"({counted(blocks, 'block')} of {each:,} bytes and what they are drawn by, {kept / 1e6:,.0f} MB"
                f"{beside}); raise it, or lower replay.capacity, or raise replay.ranks in the job"
            )


def _place(rank: RankPlan, spec: ExperimentSpec, cluster: ClusterProfile) -> _Placed:
    role = rank.roles[0].name
    wants = cluster.role(role)
    names = {each.name for each in rank.roles}
    own = [(row, section) for row, section in computing(spec) if row.name in names]
    threads = max((section.threads for _, section in own), default=1)
    cpus = threads if wants.cpus_per_rank is None else wants.cpus_per_rank
    if cpus < threads:
        raise UserError(
            f"roles.{role}.cpus_per_rank: is {cpus}, but the job gives {rank.label} {threads} threads; "
            "raise it, leave it out, or lower `threads` in the job"
        )
    for row, section in own:
        if section.device == "cuda" and not wants.gpus_per_rank:
            raise UserError(
                f"roles.{role}.gpus_per_rank: is 0, but the job's {row.section}.device is 'cuda'; "
                f"give {role} a GPU in the profile, or set {row.section}.device to auto or cpu"
            )
    return _Placed(rank, role, wants, cpus)


def _check_time(cluster: ClusterProfile, minutes: int, partitions: Sequence[str | None]) -> None:
    if cluster.signal_lead_seconds >= minutes * 60:
        raise UserError(
            f"signal_lead_seconds: is {cluster.signal_lead_seconds}; a time limit of {minutes} min leaves no time "
            "to train: ask for more --time, or lower it"
        )
    for partition in partitions:
        longest = cluster.facts(partition).max_minutes
        if longest is not None and minutes > longest:
            raise UserError(
                f"partitions.{partition}.max_minutes: is {longest}, but the job asks for {minutes} minutes; "
                "lower --time: a job that is cut short is resumed by requeue or --chain"
            )


def _alike(placed: Sequence[_Placed]) -> list[list[_Placed]]:
    """Runs of ranks that one type of node can serve; a rank without GPUs does not care of which type they are."""
    groups: list[list[_Placed]] = []
    gpu_type: str | None = _NO_GPUS
    for entry in placed:
        own = entry.wants.gpu_type if entry.gpus else _NO_GPUS
        # A group takes nodes of any type until its first rank with a GPU wants one.
        is_like = _NO_GPUS in (own, gpu_type) or own == gpu_type
        if groups and is_like and _node_type(groups[-1][0]) == _node_type(entry):
            groups[-1].append(entry)
            gpu_type = own if gpu_type == _NO_GPUS else gpu_type
        else:
            groups.append([entry])
            gpu_type = own
    return groups


def _node_type(entry: _Placed) -> tuple[object, ...]:
    wants = entry.wants
    return wants.partition, wants.account, wants.qos, wants.constraint, wants.exclusive


def _without_idle_gpus(group: list[_Placed], cluster: ClusterProfile) -> list[list[_Placed]]:
    """Splits ranks that need several nodes where those with GPUs end: the nodes of a component are alike, and GPUs
    beside nothing but actors would be paid for and lie idle."""
    last = max((n for n, entry in enumerate(group) if entry.gpus), default=None)
    if last is None or last == len(group) - 1 or (_nodes(group) is None and _fits(group, 1, cluster)):
        return [group]
    return [group[: last + 1], group[last + 1 :]]


def _nodes(group: Sequence[_Placed]) -> int | None:
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


def _blocks(group: Sequence[_Placed], nodes: int) -> list[Sequence[_Placed]]:
    """Ranks node by node, in even blocks."""
    each, more = divmod(len(group), nodes)
    starts = [node * each + min(node, more) for node in range(nodes + 1)]
    return [group[start:end] for start, end in itertools.pairwise(starts)]


def _spread(group: Sequence[_Placed], nodes: int) -> _Node:
    blocks = _blocks(group, nodes)
    # sbatch takes one number of CPUs for all tasks of a component: times the tasks of a node it must give their sum.
    return _Node(
        tuple(len(block) for block in blocks),
        max(math.ceil(sum(entry.cpus for entry in block) / len(block)) for block in blocks),
        max(gpus_of_node([entry.gpus for entry in block]) for block in blocks),
        max(sum(entry.wants.memory_mb_per_rank or 0 for entry in block) for block in blocks),
    )


def _fits(group: Sequence[_Placed], nodes: int, cluster: ClusterProfile) -> bool:
    most = {entry.role: entry.wants.ranks_per_node for entry in group}
    is_crowded = any(
        count > (most[role] or count)
        for block in _blocks(group, nodes)
        for role, count in Counter(entry.role for entry in block).items()
    )
    return not is_crowded and _spread(group, nodes).fits(cluster.facts(group[0].wants.partition))


def _numbers_of_nodes(group: Sequence[_Placed], cluster: ClusterProfile) -> range:
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


def _component(group: Sequence[_Placed], cluster: ClusterProfile) -> Component:
    _check_memory(group)
    wanted = _nodes(group)
    role = group[-1].role
    if wanted is not None and wanted > len(group):
        ranks = counted(len(group), "rank")
        raise UserError(f"roles.{role}.nodes: is {wanted}, for {ranks}; a node must have at least one")
    candidates = _numbers_of_nodes(group, cluster) if wanted is None else (wanted,)
    nodes = next((count for count in candidates if _fits(group, count, cluster)), None)
    if nodes is None:
        raise UserError(_too_full(group, cluster, wanted))
    node, wants, facts = _spread(group, nodes), group[0].wants, cluster.facts(group[0].wants.partition)
    cpus = node.cpus_per_task * len(group)
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
        "ntasks-per-node": node.tasks[0],
        "cpus-per-task": node.cpus_per_task,
        "gpus-per-node": (f"{gpu_type}:" if gpu_type else "") + str(node.gpus) if node.gpus else None,
        "mem": f"{node.memory_mb}M" if node.memory_mb else None,
        "exclusive": True if wants.exclusive else None,
        **cluster.sbatch,
    }
    return {name: value for name, value in options.items() if value is not None}


def _check_memory(group: Sequence[_Placed]) -> None:
    without = [entry.role for entry in group if entry.wants.memory_mb_per_rank is None]
    if without and len(without) < len(group):
        raise UserError(
            f"roles.{without[0]}.memory_mb_per_rank: is not set, but other roles on these nodes set theirs; "
            "memory is asked for by node, so set it for all of them or for none (`default` sets it for all)"
        )


def _too_full(group: Sequence[_Placed], cluster: ClusterProfile, wanted: int | None) -> str:
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
