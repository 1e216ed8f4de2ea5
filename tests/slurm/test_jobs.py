"""What Slurm 22.05 said, recorded in `slurm_said/`, and what is understood."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.slurm.jobs import JobState, parse_accounting, parse_queue, parse_shown
from srlhpc.slurm.pending_reasons import explained

SAID = Path(__file__).with_name("slurm_said")


@pytest.fixture
def queue() -> dict[str, JobState]:
    return parse_queue((SAID / "squeue.txt").read_text())


@pytest.mark.parametrize(
    ("job", "state", "reason"),
    [
        ("60", "PENDING", "JobHeldUser"),
        ("61", "PENDING", "Dependency"),
        ("34", "PENDING", "DependencyNeverSatisfied"),
        ("63", "PENDING", "BeginTime"),
        ("64", "PENDING", "PartitionTimeLimit"),
        ("66", "PENDING", "Resources"),
        ("67", "PENDING", "Resources"),
        ("65", "RUNNING", ""),
        ("69", "CANCELLED", "JobHeldUser"),
        ("70", "FAILED", "NonZeroExitCode"),
        ("62", "COMPLETED", ""),
    ],
)
def test_queue_has_state_and_reason(queue: dict[str, JobState], job: str, state: str, reason: str) -> None:
    assert (queue[job].state, queue[job].reason) == (state, reason)
    assert queue[job].is_active == (state in ("PENDING", "RUNNING"))


def test_held_job_is_known_by_all_of_slurms_words(queue: dict[str, JobState]) -> None:
    assert {job for job, state in queue.items() if state.is_held} == {"60", "37"}


def test_running_job_has_nodes_and_time_left(queue: dict[str, JobState]) -> None:
    assert (queue["65"].nodes, queue["65"].time_left) == ("gpu[1-2]", "59:49")


def test_heterogeneous_job_starts_with_its_last_component(queue: dict[str, JobState]) -> None:
    assert queue["67"].start == "2026-11-28T06:54:00"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [("9+0|PENDING|None|1:00||N/A\n9+1|PENDING|Resources|1:00||N/A\n", "Resources")]
    + [("9+1|PENDING|Priority|1:00||N/A\n9+0|PENDING|None|1:00||N/A\n", "Priority")],
)
def test_reason_of_any_component_is_the_jobs(lines: str, reason: str) -> None:
    assert parse_queue(lines)["9"].reason == reason


def test_accounting_gives_the_verdict_on_each_job() -> None:
    jobs = parse_accounting((SAID / "sacct.txt").read_text())
    assert jobs["70"].verdict == "job 70: FAILED, exit code 3:0, on cpu2"
    assert jobs["37"].verdict == "job 37: CANCELLED"
    assert (jobs["46"].state, jobs["46"].nodes) == ("COMPLETED", "gpu1")


def test_controller_gives_state_reason_exit_code_and_nodes() -> None:
    lines = (SAID / "scontrol.txt").read_text().splitlines()
    shown = {line.split()[0]: parse_shown("9", line) for line in lines}
    assert shown["JobId=70"] == JobState("9", "FAILED", "NonZeroExitCode", nodes="cpu2", exit_code="3:0")
    assert parse_shown("9", "slurm_load_jobs error: Invalid job id specified") is None


@pytest.mark.parametrize(
    ("reason", "words", "remedy"),
    [
        ("Priority", "higher priority", "sprio -j 9"),
        ("DependencyNeverSatisfied", "did not end as it should", "never start"),
        ("Dependency", "earlier job", "wait"),
        ("PartitionTimeLimit", "more time than its partition", "less --time"),
        ("AssocMaxJobsLimit", "as many running jobs", "wait"),
        ("QOSMaxCpuPerUserLimit", "a limit of your account or QOS", "wait"),
        ("AssocGrpGRES", "a limit of your account or QOS", "wait"),
        ("ReqNodeNotAvail, UnavailableNodes:cpu[1-2]", "down, drained or reserved", "sinfo -R"),
        ("job requeued in held state", "held", "scontrol release 9"),
        ("launch failed requeued held", "could not be started", "scontrol release 9"),
        ("SomethingNew", "no other reason", "scontrol show job 9"),
        ("", "no other reason", "scontrol show job 9"),
    ],
)
def test_explained_reason_has_meaning_and_remedy(reason: str, words: str, remedy: str) -> None:
    meaning, help_ = explained(reason, "9")
    assert words in meaning
    assert remedy in help_
