"""Training that needs more than one time limit: with requeue, and as a chain of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from srlhpc.launch.run_state import job_ids
from srlhpc.launch.slurm import run_slurm
from tests.slurm.runs_on_slurm import PROFILE, SlurmRun

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("lab"), pytest.mark.timeout(400)]

HALF_CHEETAH = {"job": "jobs/halfcheetah.yaml", "profile": PROFILE.replace("seconds: 40", "seconds: 25"), "time": 1}
ONLY_AT_THE_END = ("trainers.device=cpu", "checkpoint.every_seconds=1000")


def train_for(hours: float) -> tuple[str, ...]:
    """Overrides: training time over all jobs is the only limit, so that the speed of the machine matters little."""
    return (*ONLY_AT_THE_END, "stop.steps=null", f"stop.hours={hours}")


def curve(run: SlurmRun) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.paths.metrics.read_text().splitlines()]


def assert_goes_on(run: SlurmRun) -> None:
    """Every attempt began where the one before had ended, and nothing was forgotten."""
    for before, after in pairwise(curve(run)):
        assert after["steps"] > before["steps"]
        assert after["updates"] == before["updates"] + 1 or after["attempt"] == before["attempt"]
        assert after["episodes"] >= before["episodes"]
        if after["episodes"] == before["episodes"]:
            assert after["return_mean"] == before["return_mean"]


def test_run_that_needs_several_limits_then_a_checkpoint_before_each_and_its_stop_is_reached(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*train_for(0.02), **HALF_CHEETAH)
    run.wait_for_state("finished", seconds=360.0)
    *cut_short, last = run.paths.attempt_numbers()
    assert len(cut_short) >= 2
    assert {run.end(number)["reason"] for number in cut_short} == {"time_limit"}
    assert run.end(last)["reason"] == "hours"
    checkpoints = [run.checkpoint(number) or 0 for number in (*cut_short, last)]
    # On a busy machine the end may be announced before a job has trained anything.
    assert checkpoints == sorted(checkpoints)
    assert len(set(checkpoints)) >= 3
    assert {run.started(number)["job"] for number in (*cut_short, last)} == {run.job}
    assert_goes_on(run)


def test_chain_then_each_job_goes_on_and_those_that_find_the_run_finished_end_at_once(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*train_for(0.01), **HALF_CHEETAH, chain=4)
    run.wait_for_state("finished", seconds=240.0)
    jobs = job_ids(run.paths)
    attempts = run.paths.attempt_numbers()
    assert len(attempts) in (2, 3)
    assert [run.started(number)["job"] for number in attempts] == jobs[: len(attempts)]
    assert run.end(1)["reason"] == "time_limit"
    assert_goes_on(run)
    run.wait(lambda: not run_slurm(["squeue", "-h", "-t", "PD,R", "-j", ",".join(jobs)]).stdout.strip())
    assert f"job {jobs[-1]}: run r is finished (hours) already" in run.log
    assert run.paths.attempt_numbers() == attempts
