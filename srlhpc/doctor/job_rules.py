"""Turns what became of the submitted job into findings. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from srlhpc.doctor import folder_rules, gpu_rules, machine_rules, mpi_rules, slurm_rules
from srlhpc.doctor.check_job import CheckJob
from srlhpc.doctor.findings import Finding, fault, ok, warning
from srlhpc.doctor.folder_probe import FolderFacts
from srlhpc.doctor.machine_rules import Machine
from srlhpc.doctor.submitted_check import JobReport
from srlhpc.runs.batch_output import is_missing, lacks_a_module

JOB = "test job"


def job_findings(
    report: JobReport, job: CheckJob, folder: FolderFacts, here: Machine, wait_seconds: float
) -> Iterator[Finding]:
    """All that a check's job reports.

    Args:
        report: what became of it.
        job: what was submitted.
        folder: what was seen of the run folder here.
        here: facts of this process.
        wait_seconds: how long it was given to start.
    """
    if (requeue := slurm_rules.requeue_of_job(report.requeue, job.cluster)) is not None:
        yield requeue
    if (trouble := job_trouble(report, job, folder.folder, wait_seconds)) is not None:
        yield trouble
        yield folder_rules.locks(folder)
        return
    batch = report.batch or {}
    nodes = machine_rules.machines(report.ranks)
    where = ", ".join(str(node["host"]) for node in nodes) or batch["host"]
    yield ok(JOB, f"job {report.job} ran on {where}")
    timed_out = bool(batch.get("timed_out"))
    yield mpi_rules.mpi_finding(
        report.ranks,
        plugin=str(batch["plugin"]),
        timed_out=timed_out,
        launcher_output=report.srun_output,
        first_try=str(batch.get("first_try", "")),
    )
    later = (
        mpi_rules.later_finding(report.ranks, timed_out=timed_out),
        mpi_rules.sum_finding(report.ranks),
        gpu_rules.job_gpus(report.ranks, job.cluster.interpreter),
        mpi_rules.sharing_finding(report.ranks),
    )
    yield from (finding for finding in later if finding is not None)
    if nodes:
        yield from machine_findings(report, nodes, here)
    yield folder_rules.locks(folder, report.ranks)


def machine_findings(report: JobReport, nodes: list[Machine], here: Machine) -> Iterator[Finding]:
    """What does not need a world."""
    yield machine_rules.environment(nodes, here, job=True)
    yield machine_rules.shared_memory(nodes)
    yield machine_rules.open_files(nodes)
    if (clocks := machine_rules.clocks(report.ranks)) is not None:
        yield clocks


def job_trouble(report: JobReport, job: CheckJob, folder: str, wait_seconds: float) -> Finding | None:
    """Why the job reported nothing of the nodes; None if it did."""
    match report.end:
        case "refused":
            said, _, remedy = report.reason.partition("\nWhat to do: ")
            return fault(JOB, f"refused: {said}", remedy.rstrip(".") or "correct the cluster profile")
        case "waits":
            return warning(
                JOB,
                f"job {report.job} did not start within {wait_seconds:g} s ({report.reason or 'no reason given'}) "
                "and was cancelled, so nodes and MPI were not checked",
                "try again with a longer --wait",
            )
        case "overdue":
            return fault(JOB, f"job {report.job} did not end and was cancelled", "look at its nodes: do they answer?")
        case "lost":
            return fault(
                JOB, f"job {report.job} was submitted, then {report.reason}", f"see to it: scancel {report.job}"
            )
    batch = report.batch
    if batch is None:
        return _without_batch(report, job, folder)
    if "error" in batch:
        return fault(
            JOB, f"job {report.job} on {batch['host']}: {batch['error']}", "correct mpi or srun_mpi in the profile"
        )
    return None


def _without_batch(report: JobReport, job: CheckJob, folder: str) -> Finding:
    """The batch script ended before it could write anything down."""
    python, words = job.cluster.interpreter, report.batch_output
    state = f" ({report.state})" if report.state else ""
    if is_missing(python, words):
        return fault("Python", f"{python} does not run on the nodes: {words}", "correct `python` in the profile")
    if lacks_a_module(words):
        return fault(
            "Python",
            f"{python} runs on the nodes, but {words}",
            "install the same srlhpc there, or let `python` of the profile name the interpreter that has it",
        )
    if not words:
        return fault(
            JOB,
            f"job {report.job} ended{state} and left nothing in {folder}",
            "do the nodes see that folder? choose one on a shared file system by --root",
        )
    return fault(
        JOB, f"job {report.job} ended{state} before it could check anything: {words}", "correct the profile's setup"
    )
