"""A first cluster profile from what Slurm reports. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from srlhpc.slurm.partitions import NodeState, by_partition

_HEAD = """\
# Cluster {cluster}, as Slurm described it. Check partition, account and environment, then:
#   srlhpc submit JOB --cluster {cluster} --dry-run
description: ""
mpi: auto                    # mpich or openmpi, if the cluster's modules bring one
# python: /path/to/venv/bin/python   # the interpreter on the nodes; else the one that submits
modules: []                  # for example [gcc/12, openmpi/4.1]
setup: []                    # shell lines, for example: [source /path/to/venv/bin/activate]
signal_lead_seconds: {lead}      # before the time limit; a checkpoint must be written within
requeue: {requeue}
time_minutes: {minutes}
roles:
"""


def first_profile(cluster: str, nodes: Sequence[NodeState], *, requeue: bool) -> str:
    """The text of a profile: roles on the default partition, trainers and policy servers where GPUs are.

    Args:
        cluster: its name.
        nodes: every node of every partition.
        requeue: whether Slurm puts jobs back into the queue by default.
    """
    partitions = by_partition(nodes)
    default = next((name for name, members in partitions.items() if members[0].is_default), next(iter(partitions)))
    gpu = _gpu_partition(partitions, default)
    limits = [members[0].max_minutes for name, members in partitions.items() if name in (default, gpu)]
    minutes = min([60, *(limit for limit in limits if limit)])
    lines = [
        _HEAD.format(
            cluster=cluster,
            # In seconds: at most half of the time limit.
            lead=min(90, minutes * 30),
            requeue=str(requeue).lower(),
            minutes=minutes,
        ).rstrip(),
        f"  default: {{partition: {_quoted(default)}}}",
    ]
    if gpu is not None:
        kinds = list(dict.fromkeys(kind for node in partitions[gpu] for kind in node.gpus))
        kind = f", gpu_type: {_quoted(kinds[0])}" if len(kinds) == 1 and kinds[0] else ""
        lines.append(f"  trainer: {{partition: {_quoted(gpu)}, gpus_per_rank: 1{kind}}}")
        lines.append(f"  policy_server: {{partition: {_quoted(gpu)}, gpus_per_rank: 1{kind}}}")
    lines.append("partitions:")
    lines += [f"  {_quoted(name)}: {{{_facts(members)}}}" for name, members in partitions.items()]
    return "\n".join([*lines, ""])


def _gpu_partition(partitions: Mapping[str, Sequence[NodeState]], default: str) -> str | None:
    """The default partition if all its nodes have GPUs, else the partition of that kind with most of them."""
    counts = {
        name: sum(sum(node.gpus.values()) for node in members)
        for name, members in partitions.items()
        if all(node.gpus for node in members)
    }
    return default if default in counts else max(counts, key=lambda name: counts[name], default=None)


def _facts(members: Sequence[NodeState]) -> str:
    """What every node of a partition has at least; GPUs only where all have as many."""
    gpus = {sum(node.gpus.values()) for node in members}
    facts = {
        "nodes": len(members),
        "cpus_per_node": min(node.cpus for node in members),
        "gpus_per_node": gpus.pop() if len(gpus) == 1 else None,
        "memory_mb_per_node": min(node.memory_mb for node in members),
        "max_minutes": members[0].max_minutes,
    }
    return ", ".join(f"{name}: {value}" for name, value in facts.items() if value is not None)


def _quoted(word: str) -> str:
    """A word as YAML takes it everywhere, quoted where it could be something else."""
    return word if word.replace("-", "").replace("_", "").isalpha() and len(word) > 2 else json.dumps(word)
