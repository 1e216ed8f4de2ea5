"""When Slurm ends a part of a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.data.atomic import write_json
from srlhpc.launch.earlier_jobs import was_cancelled
from srlhpc.launch.rundir import AttemptPaths, RunPaths
from srlhpc.launch.slurm_attempt import StepBreak

ABORTED = "srun: Job step aborted: Waiting up to 17 seconds for job step to finish.\n"


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptPaths:
    made = RunPaths(tmp_path).attempt(1)
    made.make()
    return made


def test_no_log_or_other_words_then_nothing(attempt: AttemptPaths) -> None:
    broken = StepBreak(attempt, patience_seconds=0.0)
    assert broken() is None
    (attempt.logs / "srun.log").write_text("srun: error: cpu1: task 3: Killed\n")
    assert broken() is None


def test_step_when_aborted_then_failed_after_the_patience(attempt: AttemptPaths) -> None:
    (attempt.logs / "srun.log").write_text(ABORTED)
    assert StepBreak(attempt, patience_seconds=60.0)() is None
    outcome = StepBreak(attempt, patience_seconds=0.0)()
    assert outcome is not None
    assert (outcome.state, outcome.reason) == ("failed", "terminated")


def test_job_when_marked_by_cancel_then_that_one_is_cancelled(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    write_json(paths.slurm, {"jobs": [{"id": "7", "cancelled": 1.0}, {"id": "8"}]})
    assert was_cancelled(paths, "7")
    assert not was_cancelled(paths, "8")
