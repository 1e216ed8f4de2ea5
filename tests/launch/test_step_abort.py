"""When Slurm ends a part of a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.launch.slurm_attempt import StepAbort
from srlhpc.runs.paths import AttemptPaths, RunPaths

ABORTED = "srun: Job step aborted: Waiting up to 17 seconds for job step to finish.\n"


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptPaths:
    made = RunPaths(tmp_path).attempt(1)
    made.make()
    return made


def test_nothing_is_aborted_without_a_log_or_by_other_output(attempt: AttemptPaths) -> None:
    broken = StepAbort(attempt, patience_seconds=0.0)
    assert broken() is None
    (attempt.logs / "srun.log").write_text("srun: error: cpu1: task 3: Killed\n")
    assert broken() is None


def test_aborted_step_has_failed_after_the_patience(attempt: AttemptPaths) -> None:
    (attempt.logs / "srun.log").write_text(ABORTED)
    assert StepAbort(attempt, patience_seconds=60.0)() is None
    outcome = StepAbort(attempt, patience_seconds=0.0)()
    assert outcome is not None
    assert (outcome.state, outcome.reason) == ("failed", "terminated")
