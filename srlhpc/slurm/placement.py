"""From a plan and a cluster profile to an allocation, or to the reason why it cannot work. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from srlhpc.errors import UserError, counted
from srlhpc.plan.layouts import block_layout
from srlhpc.plan.plan import Plan, RankPlan
from srlhpc.plan.replay_sizes import sent_bytes, shard_blocks, store_bytes
from srlhpc.plan.roles import computing, placed_roles
from srlhpc.plan.sizes import batches_bytes, kept_bytes
from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.slurm.node_layout import PlacedRank, fits, lay_out, nodes_set
from srlhpc.specs.cluster import ClusterProfile
from srlhpc.specs.experiment import ExperimentSpec

_NO_GPUS = ""
"""Stands for the type of GPU of ranks without GPUs."""


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


def _components(groups: Sequence[list[PlacedRank]], cluster: ClusterProfile) -> list[Component]:
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


def _whole(group: list[PlacedRank], cluster: ClusterProfile) -> Component | None:
    """All ranks of a type of node as one component, if that is possible."""
    try:
        # No refusal yet: two components may still do where one cannot.
        return lay_out(group, cluster)
    except UserError:
        return None


def _apart(group: list[PlacedRank], whole: Component | None, cluster: ClusterProfile) -> list[Component]:
    """The same as two components, if that saves GPUs.

    Raises:
        UserError: the ranks fit neither so nor so.
    """
    parts = [lay_out(part, cluster) for part in _without_idle_gpus(group, cluster)]
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
        needed, kept = (size(plan, policy) / 1e6 for size in (batches_bytes, kept_bytes))
        if given is not None and needed > given:
            by_rule = f" (its rule keeps {kept:,.0f} MB of them)" if kept else ""
            raise UserError(
                f"roles.trainer.memory_mb_per_rank: is {given}, but a trainer of '{policy}' needs {needed:,.0f} MB for "
                f"its batches alone{by_rule}; raise it, or lower batch.fragments or batch.queue in the job"
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


def _place(rank: RankPlan, spec: ExperimentSpec, cluster: ClusterProfile) -> PlacedRank:
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
    return PlacedRank(rank, role, wants, cpus)


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


def _alike(placed: Sequence[PlacedRank]) -> list[list[PlacedRank]]:
    """Runs of ranks that one type of node can serve; a rank without GPUs does not care of which type they are."""
    groups: list[list[PlacedRank]] = []
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


def _node_type(entry: PlacedRank) -> tuple[object, ...]:
    wants = entry.wants
    return wants.partition, wants.account, wants.qos, wants.constraint, wants.exclusive


def _without_idle_gpus(group: list[PlacedRank], cluster: ClusterProfile) -> list[list[PlacedRank]]:
    """Splits ranks that need several nodes where those with GPUs end: the nodes of a component are alike, and GPUs
    beside nothing but actors would be paid for and lie idle."""
    last = max((n for n, entry in enumerate(group) if entry.gpus), default=None)
    if last is None or last == len(group) - 1 or (nodes_set(group) is None and fits(group, 1, cluster)):
        return [group]
    return [group[: last + 1], group[last + 1 :]]
