"""One small job that is made as a real one: the same plan, allocation, batch script, srun and environment. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import NamedTuple

from srlhpc.doctor.reports import CheckedRank, WorkFolder
from srlhpc.errors import UserError
from srlhpc.launch.preparation import prepare_plan
from srlhpc.plan.plan import Plan
from srlhpc.plan.roles import ROLES
from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.placement import allocate
from srlhpc.slurm.sbatch import sbatch_text
from srlhpc.specs.cluster import ClusterProfile, RoleResources
from srlhpc.specs.experiment import ExperimentSpec

MINUTES = 10
_LEAD_SECONDS = 60
_JOB = {
    "environment": {"factory": "catch"},
    "policies": {
        "default": {
            "network": {"kind": "mlp"},
            "algorithm": {"kind": "ppo"},
            "batch": {"fragments": 8, "fragment_steps": 8},
        }
    },
    "stop": {"updates": 1},
}


class CheckJob(NamedTuple):
    """What is submitted."""

    ranks: list[CheckedRank]
    allocation: Allocation
    cluster: ClusterProfile
    """The user's, but for what would make a small job large."""


def check_job(cluster: ClusterProfile) -> CheckJob:
    """A job with two trainers, a policy server, two actors and whoever else the profile names.

    The trainers are on two nodes if the profile lets them, so that the network between nodes is used.

    Raises:
        UserError: the profile has no place for them; the message starts with its path.
    """
    for trainers, most in ((2, 1), (2, None), (1, None)):
        small, plan = _small(cluster, most), _plan(cluster, trainers)
        try:
            allocation = allocate(plan, small, small.time_minutes)
        except UserError as error:
            refusal = error
            continue
        if trainers == 1 or _has_nodes(allocation, small):
            break
    else:
        raise refusal
    return CheckJob(_ranks(plan, allocation), allocation, small)


def _has_nodes(allocation: Allocation, cluster: ClusterProfile) -> bool:
    """Whether each partition has as many nodes as all its components together: they share none."""
    nodes: Counter[str] = Counter()
    for component in allocation.components:
        nodes[str(component.options.get("partition", ""))] += component.nodes
    return all(count <= (cluster.facts(name).nodes or count) for name, count in nodes.items())


def _small(cluster: ClusterProfile, trainers_per_node: int | None) -> ClusterProfile:
    facts = [cluster.facts(cluster.role(role).partition).max_minutes for role in cluster.roles]
    minutes = min([MINUTES, *(most for most in facts if most)])
    roles = {name: resources.model_copy(update={"nodes": None}) for name, resources in cluster.roles.items()}
    if trainers_per_node:
        trainer = roles.get("trainer", RoleResources())
        own = {"ranks_per_node": trainers_per_node}
        roles["trainer"] = RoleResources.model_validate(trainer.model_dump(exclude_unset=True) | own)
    lead = min(cluster.signal_lead_seconds, _LEAD_SECONDS, minutes * 30)
    changed = {"roles": roles, "time_minutes": minutes, "signal_lead_seconds": lead}
    return cluster.model_copy(update=changed)


def _plan(cluster: ClusterProfile, trainers: int) -> Plan:
    named = {row.section: {"ranks": 1} for row in ROLES.values() if row.section and row.name in cluster.roles}
    sizes = {"trainers": {"ranks": trainers}, "actors": {"ranks": 2, "environments": 1}}
    spec = ExperimentSpec.model_validate({**_JOB, **named, **sizes})
    return prepare_plan(spec)


def _ranks(plan: Plan, allocation: Allocation) -> list[CheckedRank]:
    shares = [share for component in allocation.components for share in component.gpu_shares]
    return [
        CheckedRank(rank.rank, rank.label, rank.needs_torch, share)
        for rank, share in zip(plan.ranks, shares, strict=True)
    ]


def batch_text(job: CheckJob, work: WorkFolder) -> str:
    """The script for sbatch."""
    program = [job.cluster.interpreter, "-u", "-m", "srlhpc.doctor.batch", str(work.folder)]
    return sbatch_text(
        job.allocation, job.cluster, name="srlhpc-doctor", folder=work.slurm, command=shlex.join(program)
    )
