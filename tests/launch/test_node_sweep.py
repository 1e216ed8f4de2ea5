"""Leftovers of MPI's start on the nodes of a job."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from srlhpc.launch import node_sweep
from srlhpc.launch.node_sweep import sweep_command, sweep_here
from srlhpc.runs.paths import AttemptPaths
from srlhpc.runs.shared_memory import FOLDER, mpich_names
from srlhpc.slurm.allocation import Allocation, Component

JOB = f"test-{os.getpid()}"


@pytest.fixture
def left() -> Iterator[Path]:
    """What the second step of a job would leave on its fourth node."""
    path = FOLDER / mpich_names(f"{JOB}.1".encode(), node="3")[0]
    path.touch()
    yield path
    path.unlink(missing_ok=True)


@pytest.mark.skipif(not FOLDER.is_dir(), reason="needs /dev/shm")
def test_file_of_a_step_that_nobody_uses_is_removed(tmp_path: Path, left: Path) -> None:
    attempt = AttemptPaths(tmp_path / "attempts" / "0001")
    assert sweep_here(attempt, f"{JOB}0") == []
    with left.open():
        assert sweep_here(attempt, JOB) == []
    assert sweep_here(attempt, JOB) == [left]
    assert not left.exists()


@pytest.mark.skipif(not FOLDER.is_dir(), reason="needs /dev/shm")
def test_file_that_goes_meanwhile_keeps_no_other_from_being_removed(
    tmp_path: Path, left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_sweep, "_of_steps", lambda _: iter([FOLDER / f"{JOB}-gone", left]))
    assert sweep_here(AttemptPaths(tmp_path / "attempts" / "0001"), JOB) == [left]


def test_names_are_those_that_mpich_was_seen_to_use_for_job_3_step_0() -> None:
    assert mpich_names(b"3.0", node="1")[0] == "mpich_shm_c141a9dc_1"


def test_sweep_runs_one_task_on_every_node_of_every_component() -> None:
    components = (
        Component({"partition": "gpu"}, 0, 4, 1, (4,), 8, 2),
        Component({"partition": "cpu"}, 4, 4, 2, (2, 2), 4, 0),
    )
    command = sweep_command(Allocation(components, 10), ["true"])
    middle = command.index(":")
    assert {"--het-group=0", "--nodes=1", "--ntasks=1", "--mpi=none", "true"} <= set(command[:middle])
    assert {"--het-group=1", "--nodes=2", "--ntasks=2", "--overlap", "true"} <= set(command[middle:])
    alone = sweep_command(Allocation(components, 10), ["true"], only=1)
    assert alone == ["srun", *command[middle + 1 :]]


def test_sweep_reaches_the_other_components_after_one_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked"
    fake = tmp_path / "srun"
    fake.write_text(f'#!/bin/sh\necho "$@" >>{asked}\ncase "$*" in *--het-group=1*) echo gone >&2; exit 1 ;; esac\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    component = Component({"partition": "gpu"}, 0, 1, 1, (1,), 1, 0)
    attempt = AttemptPaths(tmp_path / "attempts" / "0001")
    assert node_sweep.sweep_nodes(attempt, JOB, Allocation((component,) * 3, 10)) == "gone"
    groups = [[word for word in line.split() if "het-group" in word] for line in asked.read_text().splitlines()]
    assert groups == [[f"--het-group={n}" for n in range(3)], *([f"--het-group={n}"] for n in range(3))]
