"""What became of the job, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from srlhpc.doctor.check_job import CheckJob, check_job
from srlhpc.doctor.findings import Finding
from srlhpc.doctor.folder_probe import KEPT_OUT, FolderFacts
from srlhpc.doctor.job_rules import job_findings, job_trouble
from srlhpc.doctor.submitted_check import JobReport
from srlhpc.specs.cluster import ClusterProfile
from tests.doctor.reported import node, report

FOLDER = FolderFacts("/runs", 10 << 30, lock=KEPT_OUT)
BATCH = {"host": "n1", "plugin": "pmi2", "timed_out": False, "status": 0}
HEALTHY = JobReport("ended", "7", state="RUNNING", requeue=True, batch=BATCH, ranks=(report(0), report(1)))


@pytest.fixture(scope="module")
def job() -> CheckJob:
    return check_job(ClusterProfile.model_validate({"python": "/env/python"}))


def trouble(job: CheckJob, became: JobReport) -> Finding:
    found = job_trouble(became, job, "/runs", 30.0)
    assert found is not None
    return found


def test_healthy_job_is_ok_in_every_line(job: CheckJob) -> None:
    found = {each.what: each for each in job_findings(HEALTHY, job, FOLDER, node("here"), 30.0)}
    assert {each.level for each in found.values()} == {"ok"}
    assert {"requeue", "test job", "MPI", "all-reduce", "GPUs", "Python", "/dev/shm", "open files", "clocks"} <= set(
        found
    )


def test_job_whose_ranks_did_not_start_has_no_findings_on_nodes(job: CheckJob) -> None:
    empty = [replace(report(n), stage="", host={}, mpi={}, clock=(), gpu={}, sums={}, exit_code=None) for n in (0, 1)]
    became = replace(HEALTHY, ranks=tuple(empty), srun_output="Invalid MPI type 'x'")
    levels = {each.what: each.level for each in job_findings(became, job, FOLDER, node(), 30.0)}
    assert levels["MPI"] == "fault"
    assert "Python" not in levels


def test_refused_job_has_slurms_words_and_the_remedy(job: CheckJob) -> None:
    found = trouble(job, JobReport("refused", reason="`sbatch` failed (1):\n  bad account\nWhat to do: set account."))
    assert found.line == "fault    test job:           refused: `sbatch` failed (1): bad account; set account"


def test_waiting_job_is_a_warning_with_the_reason(job: CheckJob) -> None:
    found = trouble(job, JobReport("waits", "7", "QOSMaxJobs"))
    assert (found.level, "within 30 s (QOSMaxJobs)" in found.found, "--wait" in found.remedy) == ("warning", True, True)


@pytest.mark.parametrize(
    ("became", "words"),
    [
        (JobReport("overdue", "7"), "did not end and was cancelled"),
        (JobReport("lost", "7", "Slurm does not answer."), "then Slurm does not answer."),
        (JobReport("ended", "7", state="FAILED"), "left nothing in /runs"),
        (JobReport("ended", "7", state="NODE_FAIL"), "job 7 ended (NODE_FAIL)"),
        (JobReport("ended", "7", batch_output="line 17: /env/python: No such file"), "/env/python does not run"),
        (JobReport("ended", "7", batch_output="No module named srlhpc"), "runs on the nodes, but No module named"),
        (JobReport("ended", "7", batch_output="source: x: bad"), "before it could check anything: source: x: bad"),
        (JobReport("ended", "7", batch={"host": "n1", "error": "no srun plugin is known"}), "no srun plugin is known"),
    ],
)
def test_job_without_reports_is_a_fault_that_says_why(job: CheckJob, became: JobReport, words: str) -> None:
    found = trouble(job, became)
    assert (found.level, words in found.found, bool(found.remedy)) == ("fault", True, True)
