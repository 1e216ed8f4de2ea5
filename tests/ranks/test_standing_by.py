"""Ranks that were started in advance, under MPI."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.atomic import read_json, write_json
from srlhpc.launch.mpiexec import start_ranks
from srlhpc.launch.rank_script import rank_program
from srlhpc.plan.plan import Plan
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.processes import STANDBY
from tests.launch.making_runs import make_attempt, make_run, settings

JOB = settings({"factory": "catch"}, stop={"updates": 2}, actors={"ranks": 1, "ring": 1, "environments": 8})


def start_in_advance(root: Path) -> tuple[AttemptPaths, Plan, subprocess.Popen[bytes]]:
    attempt, plan = make_attempt(make_run(root, JOB), JOB, serial=False)
    attempt.attempt.rename(attempt.standby)
    return attempt, plan, start_ranks(attempt, plan.ranks, [*rank_program(attempt), STANDBY])


def begin(attempt: AttemptPaths) -> None:
    attempt.standby.unlink()
    write_json(attempt.attempt, {"checkpoint": None})


def wait_for(path: Path, launcher: subprocess.Popen[Any]) -> None:
    while not path.exists():
        assert launcher.poll() is None, "the ranks have ended"
        time.sleep(0.02)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("is_ready", [True, False])
def test_ranks_that_stand_by_train_when_their_attempt_begins(tmp_path: Path, is_ready: bool) -> None:
    attempt, plan, launcher = start_in_advance(tmp_path)
    try:
        if is_ready:
            wait_for(attempt.ready, launcher)
            assert not RunPaths(attempt.folder.parents[1]).status.exists()
        begin(attempt)
        assert launcher.wait() == 0
    finally:
        launcher.kill()
    assert (read_json(attempt.outcome) or {})["reason"] == "updates"
    logs = [attempt.log(rank.rank, rank.label).read_text() for rank in plan.ranks]
    assert all("standing by" in text for text in logs)
