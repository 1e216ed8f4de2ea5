"""Training that needs more than one time limit: with requeue, and as a chain of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from srlhpc.data.checkpoint_names import checkpoint_files, updates_of
from srlhpc.runs.state import job_ids
from srlhpc.slurm.commands import run_slurm
from tests.on_slurm.runs_on_slurm import PROFILE, UNHURRIED, SlurmRun

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("lab"), pytest.mark.timeout(1900)]

FAST = {"profile": PROFILE.replace("seconds: 40", "seconds: 25") + "standby: false\n", "time": 2}
"""Slurm ends such a job after 35 to 95 s: on a busy machine ranks take half a minute to start, and those that stand by
would take a part of it."""
ENDLESS = (
    "trainers.device=cpu",
    "actors.ranks=1",
    "actors.inference.kind=inline",
    "checkpoint.every_seconds=1000",
    "stop.steps=1000000000",
    "stop.return_mean=null",
    UNHURRIED,
)
"""Few ranks, which start soon, and no checkpoint but at the end. The test says when it is enough."""


def newest(run: SlurmRun) -> int:
    """Updates in the newest checkpoint."""
    return max(map(updates_of, checkpoint_files(run.paths.checkpoints)), default=0)


def cut_short(run: SlurmRun) -> list[int]:
    """Attempts that have ended at a time limit."""
    return [number for number in run.paths.attempt_numbers() if run.end(number).get("reason") == "time_limit"]


def meet_limits_and_end(run: SlurmRun, limits: int) -> None:
    """Until so many attempts that got further have met their limit (a busy machine may need more), then to the end."""
    seen: set[int] = set()

    def got_further() -> bool:
        seen.update(newest(run) for number in cut_short(run) if run.end(number))
        return len(seen - {0}) >= limits

    run.wait(got_further, seconds=900.0)
    run.change(f"stop.updates={newest(run) + 1}")
    run.wait_for_state("finished", seconds=900.0)
    # The ranks' word comes first, the foreman's after it.
    run.wait(lambda: run.end(run.paths.attempt_numbers()[-1]))


def curve(run: SlurmRun) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.paths.metrics.read_text().splitlines()]


def assert_goes_on(run: SlurmRun) -> None:
    """Every attempt began where the one before had ended, and nothing was forgotten."""
    for before, after in pairwise(curve(run)):
        assert after["updates"] == before["updates"] + 1 or after["attempt"] == before["attempt"]
        assert after["episodes"] >= before["episodes"]
        # The last line of an attempt has the episodes that were heard of after its last update.
        if after["updates"] == before["updates"]:
            assert after["steps"] == before["steps"]
            assert after["episodes"] > before["episodes"]
        else:
            assert after["steps"] > before["steps"]
        if after["episodes"] == before["episodes"]:
            assert after["return_mean"] == before["return_mean"]


def test_run_over_several_time_limits_writes_a_checkpoint_before_each_and_reaches_its_stop(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*ENDLESS, **FAST)
    meet_limits_and_end(run, 2)
    *before, last = run.paths.attempt_numbers()
    assert cut_short(run) == before
    assert run.end(last)["reason"] == "updates"
    checkpoints = [run.checkpoint(number) or 0 for number in (*before, last)]
    assert checkpoints == sorted(checkpoints)
    assert len(set(checkpoints)) >= 3
    assert {run.started(number)["job"] for number in (*before, last)} == {run.job}
    assert_goes_on(run)


def test_each_job_of_a_chain_resumes_and_those_that_find_the_run_finished_end_at_once(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*ENDLESS, **FAST, chain=6)
    meet_limits_and_end(run, 1)
    jobs = job_ids(run.paths)
    attempts = run.paths.attempt_numbers()
    assert 2 <= len(attempts) < len(jobs)
    assert [run.started(number)["job"] for number in attempts] == jobs[: len(attempts)]
    assert run.end(1)["reason"] == "time_limit"
    assert_goes_on(run)
    run.wait(lambda: not run_slurm(["squeue", "-h", "-t", "PD,R", "-j", ",".join(jobs)]).stdout.strip(), seconds=300.0)
    assert f"job {jobs[-1]}: run r is finished (updates) already" in run.log
    assert run.paths.attempt_numbers() == attempts
