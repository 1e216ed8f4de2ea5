"""A new role is planned, placed, built, polled, reported and ended by its row and its builder alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from srlhpc.data.atomic import read_json
from srlhpc.launch.mpiexec import start_ranks
from srlhpc.plan.planner import make_plan
from srlhpc.ranks.serial import run_serial
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.processes import kill_processes_of
from srlhpc.runs.shared_memory import remove_leftovers
from srlhpc.slurm.placement import allocate
from srlhpc.specs.cluster import ClusterProfile
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.probe import probe_spaces
from tests.comm.launching import mpiexec
from tests.launch.making_runs import change_job, checkpoint, make_attempt, make_run, outcome, settings
from tests.ranks.toy_role import add_watcher

JOB = settings({"factory": "catch", "rows": 5, "columns": 3}, stop={"updates": 2})
LIMIT_SECONDS = 240.0


@pytest.fixture(autouse=True)
def watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    add_watcher(monkeypatch.setitem)


def totals(paths: RunPaths) -> dict[str, float]:
    """What the status says of the role."""
    found: dict[str, float] = (read_json(paths.status) or {})["roles"]["watcher"]
    return found


def test_new_role_has_a_rank_of_its_own_and_resources_on_slurm() -> None:
    spec = ExperimentSpec.model_validate(JOB)
    plan = make_plan(spec, probe_spaces(spec.environment))
    last = plan.ranks[-1]
    assert (last.label, last.needs_torch, last.is_essential) == ("watcher-0", False, False)
    assert plan.reporting_role(last.rank) is last.roles[0]
    allocation = allocate(plan, ClusterProfile(python="python"), 60)
    assert allocation.ranks == len(plan.ranks)


def test_new_role_takes_part_in_a_serial_run_and_in_its_checkpoints(tmp_path: Path) -> None:
    paths = make_run(tmp_path, JOB)
    first, _ = make_attempt(paths, JOB)
    run_serial(paths, first)
    assert outcome(first)["state"] == "finished"
    assert totals(paths)["turns"] > 0
    more = JOB | {"stop": {"updates": 3}}
    change_job(paths, more)
    resumed, _ = make_attempt(paths, more, checkpoint(paths, 2))
    run_serial(paths, resumed)
    assert totals(paths)["restored_turns"] > 0


@pytest.mark.mpi
def test_new_role_takes_part_in_a_run_over_mpi(tmp_path: Path) -> None:
    mpiexec()
    paths = make_run(tmp_path, JOB)
    attempt, plan = make_attempt(paths, JOB, serial=False)
    program = [sys.executable, "-u", "-m", "srlhpc.ranks.mpi_first", "tests.ranks.toy_rank", str(paths.folder), "1"]
    ranks = start_ranks(attempt, plan.ranks, program)
    try:
        ranks.wait(LIMIT_SECONDS)
    finally:
        kill_processes_of(attempt.folder)
        ranks.wait()
        remove_leftovers(attempt)
    assert outcome(attempt)["state"] == "finished", "\n".join(log.read_text() for log in attempt.logs.iterdir())
    assert totals(paths)["turns"] > 0
    (entry,) = (rank for rank in (read_json(paths.status) or {})["ranks"] if rank["label"] == "watcher-0")
    assert entry["pid"] > 0
    shown = subprocess.run(
        [sys.executable, "-m", "srlhpc.cli.main", "logs", "run", "--role", "watcher", "--root", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NO_COLOR": "1"},
    ).stdout
    assert "watcher-0" in shown
