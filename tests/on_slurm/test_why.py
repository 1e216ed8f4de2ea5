"""What `why` says of jobs that the lab's Slurm ends before, and other than, they were to end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from srlhpc.slurm.commands import run_slurm
from tests.on_slurm.runs_on_slurm import ENDLESS, PROFILE, SlurmRun

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("lab"), pytest.mark.timeout(240)]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("python: /nowhere/bin/python", ["  | /nowhere/bin/python: No such file or directory", "correct `python`"]),
        ("modules: [gcc/99]", ["  | srlhpc: module load gcc/99 failed", "correct `modules`"]),
    ],
)
def test_why_shows_the_line_of_the_batch_script_that_killed_the_job(
    submit: Callable[..., SlurmRun], more: str, words: list[str]
) -> None:
    run = submit(profile=f"{PROFILE}{more}\n")
    run.wait_for_state("failed")
    said = run.command("why").stdout
    assert [word for word in words if word not in said] == [], said
    assert "Traceback" not in said + run.log


def test_shortened_time_limit_is_reported_as_that_and_not_as_a_preemption(submit: Callable[..., SlurmRun]) -> None:
    run = submit(*ENDLESS)
    run.wait_until_trains()
    run_slurm(["scontrol", "update", f"jobid={run.job}", "timelimit=1"])
    run.wait(lambda: run.end(1).get("reason"), 120.0)
    # On a busy machine the job has run for longer already, and Slurm ends it at once.
    assert run.end(1)["reason"] in ("time_limit", "terminated")
    assert "was shortened from 00:10:00 to 00:01:00" in run.end(1)["message"]
