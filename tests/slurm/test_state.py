"""The state of a run on Slurm."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

import pytest

from srlhpc.slurm import jobs as jobs_module
from srlhpc.slurm.commands import SlurmRefused, SlurmSilent
from srlhpc.slurm.jobs import SlurmJobs, parse_queue
from srlhpc.slurm.state import slurm_state

STARTED = {"job": "7"}
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[..., SlurmJobs]:
    """What Slurm answers to squeue, sacct and scontrol; an exception is raised."""

    def set_answers(squeue: object = "", sacct: object = "", scontrol: object = "") -> SlurmJobs:
        answers = {"squeue": squeue, "sacct": sacct, "scontrol": scontrol}

        def run(arguments: Sequence[str], timeout: float = 0.0) -> subprocess.CompletedProcess[str]:
            answer = answers[arguments[0]]
            if isinstance(answer, Exception):
                raise answer
            return subprocess.CompletedProcess(list(arguments), 0, str(answer), "")

        monkeypatch.setattr(jobs_module, "run_slurm", run)
        return SlurmJobs(["7"])

    return set_answers


def end(state: str, reason: str) -> dict[str, str]:
    return {"state": state, "reason": reason, "message": "m"}


def test_heterogeneous_job_is_known_by_its_leader() -> None:
    found = parse_queue(
        "7+1|PENDING|Resources|10:00||N/A\n7+0|PENDING|Priority|10:00||N/A\n8|RUNNING|None|9:30|cpu1|N/A\n"
    )
    assert {job: (state.state, state.reason) for job, state in found.items()} == {
        "7": ("PENDING", "Priority"),
        "8": ("RUNNING", ""),
    }


def test_new_job_is_pending_with_slurms_reason(says: Callable[..., SlurmJobs]) -> None:
    assert slurm_state(["7"], None, None, 0.0, says("7|PENDING|Resources|1:00||N/A"))[:2] == ("pending", "Resources")


@pytest.mark.parametrize(("reason", "state"), [("time_limit", "requeued"), ("preemption", "preempted")])
def test_job_that_waits_again_says_why(says: Callable[..., SlurmJobs], reason: str, state: str) -> None:
    found = slurm_state(["7"], STARTED, end("interrupted", reason), 0.0, says("7|PENDING|BeginTime|1:00||N/A"))
    assert found[:2] == (state, "BeginTime")


def test_job_whose_nodes_boot_is_configuring(says: Callable[..., SlurmJobs]) -> None:
    assert slurm_state(["7"], None, None, 0.0, says("7|CONFIGURING|None|1:00|cpu1|N/A")).state == "configuring"


def test_job_that_runs_again_is_running(says: Callable[..., SlurmJobs]) -> None:
    jobs = says("7|RUNNING|None|1:00|cpu1|N/A")
    assert slurm_state(["7"], STARTED, end("interrupted", "time_limit"), 0.0, jobs).state == "running"


def test_finished_run_is_finished_even_with_a_job_waiting(says: Callable[..., SlurmJobs]) -> None:
    jobs = says("7|PENDING|Dependency|1:00||N/A")
    assert slurm_state(["7"], STARTED, end("finished", "steps"), 0.0, jobs).state == "finished"


def test_later_job_of_a_finished_run_counts(says: Callable[..., SlurmJobs]) -> None:
    ended = end("finished", "steps")
    waits = says("7|PENDING|Priority|1:00||N/A")
    assert slurm_state(["7"], {"job": "6"}, ended, 0.0, waits, extended=True).state == "pending"
    assert slurm_state(["7"], {"job": "6"}, ended, 0.0, says(), extended=True).state == "finished"


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("CANCELLED by 0", "cancelled"),
        ("TIMEOUT", "timed out"),
        ("NODE_FAIL", "node failed"),
        ("OUT_OF_MEMORY", "out of memory"),
        ("PREEMPTED", "preempted"),
        ("FAILED", "failed"),
    ],
)
def test_job_that_was_cut_off_has_slurms_word(says: Callable[..., SlurmJobs], word: str, state: str) -> None:
    assert slurm_state(["7"], STARTED, None, 0.0, says(sacct=f"7|{word}|0:0|None|cpu1\n")).state == state


def test_controller_is_asked_where_there_is_no_accounting(says: Callable[..., SlurmJobs]) -> None:
    off = SlurmRefused("no", "Slurm accounting storage is disabled")
    jobs = says(sacct=off, scontrol="JobId=7 JobState=NODE_FAIL Reason=None")
    assert slurm_state(["7"], STARTED, None, 0.0, jobs).state == "node failed"


def test_files_count_where_slurm_has_forgotten_the_job(says: Callable[..., SlurmJobs]) -> None:
    gone = SlurmRefused("no", "Invalid job id specified")
    jobs = says(squeue=gone, sacct=gone, scontrol=gone)
    assert slurm_state(["7"], STARTED, end("interrupted", "terminated"), 0.0, jobs).state == "interrupted"
    assert jobs.warning is None


def test_files_count_with_a_warning_where_slurm_is_silent(says: Callable[..., SlurmJobs]) -> None:
    jobs = says(squeue=SlurmSilent("Slurm does not answer."))
    assert jobs.warning == "Slurm does not answer."
    assert slurm_state(["7"], STARTED, end("interrupted", "cancelled"), 0.0, jobs).state == "cancelled"
    assert slurm_state(["7"], STARTED, None, 9e99, jobs).state == "running"


@pytest.mark.parametrize("reason", ["JobHeldUser", "JobHeldAdmin", "job requeued in held state"])
def test_held_job_is_held_also_after_an_attempt(says: Callable[..., SlurmJobs], reason: str) -> None:
    jobs = says(f"7|PENDING|{reason}|1:00||N/A")
    assert slurm_state(["7"], None, None, 0.0, jobs)[:2] == ("held", reason)
    assert slurm_state(["7"], STARTED, end("interrupted", "time_limit"), 0.0, jobs).state == "held"


@pytest.mark.parametrize(("word", "state"), [("COMPLETING", "ending"), ("SUSPENDED", "suspended")])
def test_job_has_the_state_of_what_slurm_does_with_it(says: Callable[..., SlurmJobs], word: str, state: str) -> None:
    assert slurm_state(["7"], STARTED, None, 0.0, says(f"7|{word}|None|1:00|cpu1|N/A")).state == state


def test_requeued_job_that_was_cancelled_is_cancelled(says: Callable[..., SlurmJobs]) -> None:
    jobs = says(sacct="7|CANCELLED by 0|0:0|BeginTime|None assigned\n")
    assert slurm_state(["7"], STARTED, end("interrupted", "time_limit"), 0.0, jobs).state == "cancelled"


def test_job_whose_last_restart_reached_the_limit_timed_out(says: Callable[..., SlurmJobs]) -> None:
    jobs = says(sacct="7|COMPLETED|0:0|None|cpu1\n")
    assert slurm_state(["7"], STARTED, end("interrupted", "time_limit"), 0.0, jobs).state == "timed out"


def test_job_whose_successors_were_cancelled_is_cancelled(says: Callable[..., SlurmJobs]) -> None:
    says(sacct="7|COMPLETED|0:0|None|cpu1\n8|CANCELLED by 0|0:0|None|\n")
    state = slurm_state(["7", "8"], STARTED, end("interrupted", "time_limit"), 0.0, SlurmJobs(["7", "8"]))
    assert state.state == "cancelled"


def test_job_that_we_cancelled_and_slurm_forgot_is_cancelled(says: Callable[..., SlurmJobs]) -> None:
    gone = SlurmRefused("no", "Invalid job id specified")
    jobs = says(squeue=gone, sacct=gone, scontrol=gone)
    assert slurm_state(["7"], None, None, 0.0, jobs, cancelled=["7"]).state == "cancelled"
    assert slurm_state(["7"], None, None, 0.0, jobs)[:2] == ("failed", "killed")


@pytest.mark.parametrize("before", [("finished", "steps"), ("failed", "killed"), ("interrupted", "cancelled")])
def test_job_that_never_began_is_told_and_not_the_end_before(
    says: Callable[..., SlurmJobs], before: tuple[str, str]
) -> None:
    says(sacct="7|FAILED|127:0|None|cpu1\n")
    found = slurm_state(["6", "7"], {"job": "6"}, end(*before), 0.0, SlurmJobs(["6", "7"]), extended=True)
    assert (found.state, found.speechless_job) == ("failed", "7")
    assert found.message == (
        "job 7: it ended before its first attempt; Slurm says job 7: FAILED, exit code 127:0, on cpu1"
    )


def test_silent_slurm_and_an_old_lease_are_unknown(says: Callable[..., SlurmJobs]) -> None:
    jobs = says(squeue=SlurmSilent("Slurm does not answer."))
    assert slurm_state(["7"], None, None, 0.0, jobs).state == "unknown"
    assert slurm_state(["7"], STARTED, end("interrupted", "time_limit"), 0.0, jobs).state == "unknown"
    assert slurm_state(["7"], STARTED, end("failed", "exception"), 0.0, jobs).state == "failed"


def test_accounting_is_asked_once_for_several_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(arguments: Sequence[str], timeout: float = 0.0) -> subprocess.CompletedProcess[str]:
        asked.append(arguments[0])
        said = "".join(f"{job}|FAILED|1:0|None|cpu1\n" for job in range(9)) if arguments[0] == "sacct" else ""
        return subprocess.CompletedProcess(list(arguments), 0, said, "")

    monkeypatch.setattr(jobs_module, "run_slurm", run)
    jobs = SlurmJobs(str(job) for job in range(9))
    assert {state.state for job in range(9) if (state := jobs.ended(str(job)))} == {"FAILED"}
    assert asked == ["squeue", "sacct"]
