"""Tells what Slurm's settings and state mean for runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from srlhpc.doctor.findings import Finding, fault, ok, warning
from srlhpc.doctor.limit_rules import limit_findings
from srlhpc.doctor.slurm_facts import SlurmFacts
from srlhpc.errors import counted
from srlhpc.plan.roles import placed_roles
from srlhpc.specs.cluster import ClusterProfile

REQUEUE, PREEMPTION = "requeue", "pre-emption"


def slurm_findings(facts: SlurmFacts, cluster: ClusterProfile | None) -> Iterator[Finding]:
    """What the controller says.

    Args:
        facts: of Slurm.
        cluster: a profile whose partitions matter; None: all of them.
    """
    name, version = facts.settings.get("ClusterName", "?"), facts.settings.get("SLURM_VERSION", "?")
    yield ok("Slurm", f"answers: cluster {name}, version {version}, {counted(len(facts.partitions), 'partition')}")
    yield accounting(facts)
    yield preemption(facts, partitions_used(facts, cluster), cluster)
    yield from limit_findings(facts.settings)


def accounting(facts: SlurmFacts) -> Finding:
    """Whether Slurm remembers how jobs ended."""
    kind = facts.settings.get("AccountingStorageType", "")
    forgets = f"Slurm forgets how a job ended {facts.settings.get('MinJobAge', '300 sec')} later"
    if kind.endswith("/none") or kind in ("", "(null)"):
        return warning("accounting", "is off", f"nothing needs doing: runs write their own state down, but {forgets}")
    if facts.accounting_error:
        return warning(
            "accounting",
            f"is on, but sacct says: {facts.accounting_error}",
            f"ask the administrator; until then {forgets}",
        )
    return ok("accounting", f"is on ({kind.rpartition('/')[2]})")


def requeue_default(facts: SlurmFacts) -> Finding:
    """What Slurm does where a job does not say; srlhpc's jobs do."""
    if facts.settings.get("JobRequeue", "1") == "1":
        return ok(REQUEUE, "is allowed (JobRequeue=1)")
    return warning(
        REQUEUE,
        "is off by default (JobRequeue=0)",
        "srlhpc asks for it job by job; where the site forbids that, set requeue: false in the profile and use --chain",
    )


def requeue_of_job(granted: bool | None, cluster: ClusterProfile) -> Finding | None:
    """Whether the job that was submitted may be requeued, as the profile wants; None if there is nothing to say."""
    if not cluster.requeue:
        return ok(REQUEUE, "the profile does without; long runs continue by --chain")
    if granted is None:
        return None
    if granted:
        return ok(REQUEUE, "the job may be requeued, as the profile wants")
    return fault(
        REQUEUE,
        "the profile wants requeue, but the cluster took it from the job (Requeue=0)",
        "set requeue: false in the profile and submit with --chain N",
    )


def partitions_used(facts: SlurmFacts, cluster: ClusterProfile | None) -> list[str]:
    """Names of the partitions that the profile's roles run in."""
    if cluster is None:
        return list(facts.partitions)
    default = next((name for name, row in facts.partitions.items() if row.get("Default") == "YES"), "")
    named = [cluster.role(role).partition or default for role in placed_roles(cluster)]
    words = dict.fromkeys(word for name in named for word in name.split(","))
    return [word for word in words if word in facts.partitions]


def preemption(facts: SlurmFacts, partitions: Sequence[str], cluster: ClusterProfile | None) -> Finding:
    """Whether a job that somebody more important pushes out is warned in time."""
    doomed = [name for name in partitions if _is_preemptible(facts, name)]
    if not doomed:
        where = "these partitions" if cluster else "any partition"
        return ok(PREEMPTION, f"jobs in {where} are not pre-empted")
    names = ", ".join(doomed)
    if "preempt_send_user_signal" not in facts.settings.get("SlurmctldParameters", ""):
        return warning(
            PREEMPTION,
            f"jobs in {names} can be pre-empted, and Slurm does not send them the signal that they ask for",
            "ask the administrator for SlurmctldParameters=preempt_send_user_signal; until then write checkpoints "
            "often (checkpoint.every_seconds)",
        )
    grace = min(int(facts.partitions[name].get("GraceTime", "0") or 0) for name in doomed)
    lead = cluster.signal_lead_seconds if cluster else None
    if grace == 0:
        return warning(
            PREEMPTION,
            f"jobs in {names} are killed without warning (GraceTime=0)",
            "ask the administrator for a GraceTime; until then write checkpoints often (checkpoint.every_seconds)",
        )
    if lead is not None and grace < lead:
        return warning(
            PREEMPTION,
            f"jobs in {names} have {grace} s for a checkpoint (GraceTime), and signal_lead_seconds is {lead}",
            "a checkpoint that takes longer is lost; write them often (checkpoint.every_seconds)",
        )
    return ok(PREEMPTION, f"jobs in {names} are warned {grace} s before (preempt_send_user_signal)")


def _is_preemptible(facts: SlurmFacts, name: str) -> bool:
    kind = facts.settings.get("PreemptType", "preempt/none")
    mode = facts.partitions[name].get("PreemptMode", "OFF")
    if kind.endswith("/none") or mode in ("OFF", "GANG") or "SUSPEND" in mode:
        return False
    if not kind.endswith("/partition_prio"):
        return True
    tiers = {other: int(row.get("PriorityTier", "1")) for other, row in facts.partitions.items()}
    return any(tier > tiers[name] for tier in tiers.values())
