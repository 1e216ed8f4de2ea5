"""What Slurm says of itself, and what that means for runs."""

from __future__ import annotations

import pytest

from srlhpc.doctor.slurm_facts import SlurmFacts, parse_partitions
from srlhpc.doctor.slurm_rules import (
    accounting,
    partitions_used,
    preemption,
    requeue_default,
    requeue_of_job,
    slurm_findings,
)
from srlhpc.specs.cluster import ClusterProfile

PARTITIONS = """\
PartitionName=cpu AllowGroups=ALL Default=YES GraceTime=0 PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=low AllowGroups=ALL Default=NO GraceTime=60 PriorityTier=1 PreemptMode=REQUEUE State=UP
"""
SETTINGS = {
    "ClusterName": "lab",
    "SLURM_VERSION": "22.05.8",
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "MinJobAge": "120 sec",
    "JobRequeue": "1",
    "PreemptType": "preempt/partition_prio",
    "SlurmctldParameters": "preempt_send_user_signal",
}


def facts(partitions: str = PARTITIONS, error: str = "", **settings: str) -> SlurmFacts:
    return SlurmFacts(SETTINGS | settings, parse_partitions(partitions), error)


def profile(partition: str | None = "low", **changes: object) -> ClusterProfile:
    return ClusterProfile.model_validate({"roles": {"default": {"partition": partition}}, **changes})


def test_slurm_in_order_is_ok_for_each() -> None:
    assert {finding.level for finding in slurm_findings(facts(), profile("cpu"))} == {"ok"}


def test_missing_accounting_is_a_warning_with_how_long_slurm_remembers() -> None:
    found = accounting(facts(AccountingStorageType="accounting_storage/none"))
    assert (found.level, found.found, "120 sec" in found.remedy) == ("warning", "is off", True)


def test_silent_accounting_daemon_is_a_warning() -> None:
    found = accounting(facts(error="Connection refused"))
    assert (found.level, found.found) == ("warning", "is on, but sacct says: Connection refused")


@pytest.mark.parametrize(("value", "level"), [("1", "ok"), ("0", "warning")])
def test_level_follows_slurms_default_of_requeue(value: str, level: str) -> None:
    assert requeue_default(facts(JobRequeue=value)).level == level


def test_requeue_that_the_cluster_forbids_is_a_fault() -> None:
    taken, kept, unwanted = (
        requeue_of_job(False, profile()),
        requeue_of_job(True, profile()),
        requeue_of_job(False, profile(requeue=False)),
    )
    assert taken is not None
    assert kept is not None
    assert unwanted is not None
    assert (taken.level, kept.level, unwanted.level) == ("fault", "ok", "ok")
    assert "--chain" in taken.remedy
    assert requeue_of_job(None, profile()) is None


def test_partitions_without_preemption_are_ok() -> None:
    assert preemption(facts(), ["cpu"], profile("cpu")).level == "ok"
    assert preemption(facts(PreemptType="preempt/none"), ["low"], profile()).level == "ok"


def test_preemption_without_a_signal_is_a_warning() -> None:
    found = preemption(facts(SlurmctldParameters="(null)"), ["cpu", "low"], profile())
    assert found.level == "warning"
    assert "jobs in low can be pre-empted" in found.found
    assert "preempt_send_user_signal" in found.remedy


@pytest.mark.parametrize(("lead", "level"), [(60, "ok"), (61, "warning")])
def test_grace_shorter_than_the_lead_is_a_warning(lead: int, level: str) -> None:
    assert preemption(facts(), ["low"], profile(signal_lead_seconds=lead)).level == level


def test_preemption_without_grace_is_a_warning() -> None:
    found = preemption(facts(PARTITIONS.replace("GraceTime=60", "GraceTime=0")), ["low"], profile())
    assert found.found == "jobs in low are killed without warning (GraceTime=0)"


def test_preemption_by_nobody_is_ok() -> None:
    alone = PARTITIONS.replace("PriorityTier=10", "PriorityTier=1")
    assert preemption(facts(alone), ["low"], profile()).level == "ok"


def test_partitions_are_those_of_the_roles_or_the_default_or_all() -> None:
    assert partitions_used(facts(), profile("low,gone")) == ["low"]
    assert partitions_used(facts(), profile(None)) == ["cpu"]
    assert partitions_used(facts(), None) == ["cpu", "low"]
