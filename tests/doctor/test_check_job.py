"""The job that a check submits."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from srlhpc.doctor.check_job import batch_text, check_job
from srlhpc.doctor.reports import WorkFolder
from srlhpc.errors import UserError
from srlhpc.specs.cluster import ClusterProfile, load_cluster

NODE = {"cpus_per_node": 8, "memory_mb_per_node": 8000}


def profile(**changes: Any) -> ClusterProfile:
    return ClusterProfile.model_validate({"roles": {"default": {"partition": "cpu"}}, **changes})


def test_trainers_lie_on_different_nodes_where_all_are_alike() -> None:
    job = check_job(profile(partitions={"cpu": {"nodes": 4, **NODE}}))
    (component,) = job.allocation.components
    trainers = [rank.rank for rank in job.ranks if rank.label.startswith("trainer")]
    assert len({component.node_of(rank) for rank in trainers}) == 2


def test_job_lies_on_one_node_where_there_is_one() -> None:
    job = check_job(profile(partitions={"cpu": {"nodes": 1, **NODE}}))
    assert [component.nodes for component in job.allocation.components] == [1]


def test_job_of_the_lab_has_a_component_for_each_type_of_node() -> None:
    job = check_job(load_cluster("jobs/clusters/lab.yaml"))
    assert [(each.options["partition"], each.nodes, each.gpus) for each in job.allocation.components] == [
        ("gpu", 2, 2),
        ("cpu", 1, 0),
    ]
    assert [rank.gpus for rank in job.ranks] == [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]


def test_job_for_a_profile_of_hundreds_of_ranks_is_small_and_short() -> None:
    roles = {"default": {"partition": "cpu"}, "actor": {"nodes": 100}, "evaluator": {"cpus_per_rank": 2}}
    large = profile(roles=roles, time_minutes=1440, signal_lead_seconds=600)
    job = check_job(large)
    assert job.allocation.minutes == 10
    assert sum(component.nodes for component in job.allocation.components) <= len(job.ranks) == 7


def test_time_limit_of_the_job_is_within_a_short_maximum() -> None:
    job = check_job(profile(partitions={"cpu": {"max_minutes": 2, **NODE}}))
    assert (job.allocation.minutes, job.cluster.signal_lead_seconds) == (2, 60)


def test_job_that_cannot_fit_is_the_users_to_put_right() -> None:
    with pytest.raises(UserError, match=r"roles\.actor"):
        check_job(profile(partitions={"cpu": {"nodes": 1, "cpus_per_node": 1}}))


def test_script_is_a_real_one_but_for_the_program(tmp_path: Path) -> None:
    job = check_job(profile(python="/env/python", setup=["ulimit -n 64"], modules=["gcc"]))
    text = batch_text(job, WorkFolder(tmp_path))
    assert {"module load gcc", "ulimit -n 64", "#SBATCH --requeue", "#SBATCH --partition=cpu"} <= set(text.splitlines())
    last = shlex.split(text.splitlines()[-1])
    assert last == ["exec", "/env/python", "-u", "-m", "srlhpc.doctor.batch", str(tmp_path)]
