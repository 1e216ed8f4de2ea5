"""What a job makes of what earlier ones have left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.atomic import read_json, write_json
from srlhpc.runs.earlier_jobs import cancelled_jobs, close_lost_attempt, ended_attempt, ended_before
from srlhpc.runs.paths import AttemptPaths, RunPaths


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptPaths:
    made = RunPaths(tmp_path).new_attempt()
    write_json(made.attempt, {"job": "17"})
    return made


def run_of(attempt: AttemptPaths) -> RunPaths:
    return RunPaths(attempt.folder.parent.parent)


def job(number: str, submitted: float) -> dict[str, Any]:
    return {"id": number, "submitted": submitted}


def test_attempt_cut_off_with_its_foreman_is_closed(attempt: AttemptPaths) -> None:
    assert close_lost_attempt(run_of(attempt), "17") == attempt
    assert (read_json(attempt.end) or {})["reason"] == "requeued"
    assert close_lost_attempt(run_of(attempt), "17") is None


def test_outcome_counts_where_only_the_foreman_was_cut_off(attempt: AttemptPaths) -> None:
    write_json(attempt.outcome, {"state": "finished", "reason": "steps", "message": "9 steps trained"})
    close_lost_attempt(run_of(attempt), "17")
    assert (read_json(attempt.end) or {})["state"] == "finished"


def test_attempt_of_no_job_is_left_alone(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    write_json(paths.new_attempt().attempt, {"job": None})
    assert close_lost_attempt(paths, "17") is None


def test_jobs_submitted_before_the_end_of_a_run_have_nothing_to_do(attempt: AttemptPaths) -> None:
    write_json(attempt.end, {"state": "finished", "reason": "steps", "message": "", "time": 100.0})
    jobs = [job("17", 1.0), job("18", 2.0), job("19", 200.0)]
    ended = ended_before(run_of(attempt), "18", jobs)
    assert ended is not None
    assert (ended.state, ended.reason) == ("finished", "steps")
    assert ended_before(run_of(attempt), "19", jobs) is None


@pytest.mark.parametrize("clock_is_ahead_by", [-3600.0, 0.0, 3600.0])
def test_what_a_job_was_submitted_after_does_not_depend_on_the_clock_of_that_host(
    attempt: AttemptPaths, clock_is_ahead_by: float
) -> None:
    run, now = run_of(attempt), 5000.0 + clock_is_ahead_by
    before = job("18", now - 1.0) | {"after_attempt": ended_attempt(run)}
    write_json(attempt.end, {"state": "finished", "reason": "steps", "message": "", "time": 5000.0})
    after = job("19", now + 1.0) | {"after_attempt": ended_attempt(run)}
    assert ended_before(run, "18", [before, after]) is not None
    assert ended_before(run, "19", [before, after]) is None


@pytest.mark.parametrize("state", ["failed", "interrupted"])
def test_unfinished_run_has_work_left(attempt: AttemptPaths, state: str) -> None:
    write_json(attempt.end, {"state": state, "reason": "", "message": "", "time": 100.0})
    assert ended_before(run_of(attempt), "17", [job("17", 1.0)]) is None


def test_job_marked_by_cancel_is_cancelled(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    write_json(paths.slurm, {"jobs": [{"id": "7", "cancelled": 1.0}, {"id": "8"}]})
    assert cancelled_jobs(paths) == {"7"}
