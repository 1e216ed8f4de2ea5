"""Runs on Open MPI, which Slurm starts through PMIx."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.on_slurm.runs_on_slurm import ENDLESS, LAB_PROFILE, PROFILE, SlurmRun, lab_state
from tests.openmpi import openmpi_python

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("lab"), pytest.mark.timeout(240)]


def on_open_mpi(profile: str) -> str:
    return profile.replace("mpi: mpich", f"mpi: openmpi\npython: {openmpi_python()}")


def shared_memory_of_nodes() -> list[str]:
    """What is in /dev/shm of the lab's nodes."""
    folders = [Path("/proc", pid.read_text().strip(), "root/dev/shm") for pid in pids_of_nodes()]
    return [path.name for folder in folders for path in folder.iterdir()]


def pids_of_nodes() -> list[Path]:
    return list((lab_state() / "pids").glob("slurmd-*"))


def test_heterogeneous_job_on_open_mpi_is_one_world_that_solves(submit: Callable[..., SlurmRun]) -> None:
    profile = on_open_mpi(LAB_PROFILE)
    size = ("trainers.ranks=2", "actors.ranks=4", "actors.environments=4", "trainers.device=cpu")
    run = submit(*size, profile=profile)
    run.wait(lambda: run.status.get("ranks_alive") == 8)
    hosts = {rank["label"]: rank["host"] for rank in run.status["ranks"]}
    run.wait_for_state("finished", seconds=120.0)
    assert run.state["reason"] == "return_mean"
    assert {host for label, host in hosts.items() if not label.startswith("actor")} <= {"gpu1", "gpu2"}
    assert sorted({host for label, host in hosts.items() if label.startswith("actor")}) == ["cpu1", "cpu2"]


def test_ranks_on_open_mpi_start_again_in_the_same_job_after_the_trainer_is_killed(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*ENDLESS, profile=on_open_mpi(PROFILE))
    run.wait_until_trains()
    run.wait(lambda: run.paths.attempt(2).ready.exists())
    os.kill(run.pid_of("trainer"), signal.SIGKILL)
    run.wait_until_trains(2)
    assert "standing by" in run.paths.attempt(2).log(0, "coordinator-0").read_text()
    assert (run.checkpoint(2) or 0) > 0
    assert run.started(1)["job"] == run.started(2)["job"]
    assert "SIGKILL" in run.end(1)["message"]
    run.clear()
    assert [name for name in shared_memory_of_nodes() if name.startswith("sm_segment")] == []


@pytest.mark.parametrize("plugin", ["none", "pmi2"])
def test_open_mpi_without_pmix_is_refused_within_seconds_and_not_tried_again(
    submit: Callable[..., SlurmRun], plugin: str
) -> None:
    run = submit(profile=on_open_mpi(PROFILE) + f"srun_mpi: {plugin}\n")
    run.wait_for_state("failed")
    assert run.paths.attempt_numbers() == [1]
    said = run.command("why").stdout
    assert "MPI started 1 rank of 5" in said
    assert "--mpi=pmix" in said
