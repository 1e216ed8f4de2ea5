"""One examination: gathers facts step by step and turns each into findings."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from srlhpc.doctor import folder_rules, gpu_rules, machine_rules, mpi_rules
from srlhpc.doctor.check_job import check_job
from srlhpc.doctor.findings import Finding, fault, ok, warning
from srlhpc.doctor.folder_probe import FolderFacts, existing, probe_folder
from srlhpc.doctor.job_rules import job_findings
from srlhpc.doctor.local_check import run_here
from srlhpc.doctor.machine import machine_facts
from srlhpc.doctor.reports import WorkFolder
from srlhpc.doctor.slurm_facts import read_slurm
from srlhpc.doctor.slurm_rules import requeue_default, slurm_findings
from srlhpc.doctor.submitted_check import SubmittedCheck
from srlhpc.errors import ClusterError, UserError
from srlhpc.slurm.commands import NoSlurm
from srlhpc.slurm.node_order import in_node_order
from srlhpc.specs.cluster import ClusterFile

SLURM = "Slurm"
_ASK = "is its controller up, and does this machine reach it? ask: scontrol ping"


def examine_here(root: Path) -> Iterator[Finding]:
    """This machine, and Slurm if its commands are here.

    Args:
        root: where runs will lie.

    Raises:
        UserError: it cannot be a folder.
    """
    folder = _probe(root)
    yield folder_rules.space(folder)
    if folder.error:
        yield from _machine_alone(root)
    else:
        yield from _two_ranks(root, folder)
    try:
        facts = read_slurm()
    except NoSlurm:
        yield ok(SLURM, "none on this machine, so runs are started by `srlhpc run`")
    except ClusterError as error:
        said, _, remedy = str(error).partition("; ")
        yield warning(SLURM, f"{said}, so runs can only be started by `srlhpc run`", remedy or _ASK)
    else:
        yield from slurm_findings(facts, None)
        yield requeue_default(facts)


def examine_cluster(
    root: Path, found: ClusterFile, wait_seconds: float, say: Callable[[str], None]
) -> Iterator[Finding]:
    """A cluster, by one small job.

    Args:
        root: where runs will lie.
        found: the cluster's profile.
        wait_seconds: how long the job may be pending.
        say: for people who wait.

    Raises:
        UserError: the profile has no place for the job, or the folder cannot be one.
        NoSlurm: there are no Slurm commands here.
    """
    with found.naming_places():
        job = check_job(found.profile)
    folder = _probe(root)
    yield folder_rules.space(folder)
    try:
        yield from slurm_findings(read_slurm(), found.profile)
    except NoSlurm:
        raise
    except ClusterError as error:
        said, _, remedy = str(error).partition("; ")
        yield fault(SLURM, said, remedy or _ASK)
        return
    if folder.error:
        return
    with _work_folder(root) as work:
        here = machine_facts(work.folder)
        try:
            job = job._replace(allocation=in_node_order(job.allocation, job.cluster))
            report = SubmittedCheck(job, work, wait_seconds, say).run()
        except ClusterError as error:
            yield fault(SLURM, str(error), "ask the administrator, or try later")
            return
        # The profile's own requeue and lead time, not those of the small job.
        yield from job_findings(report, job._replace(cluster=found.profile), folder, here, wait_seconds)


def _two_ranks(root: Path, folder: FolderFacts) -> Iterator[Finding]:
    with _work_folder(root) as work:
        here = machine_facts(work.folder)
        try:
            ranks, words = run_here(work)
        except UserError as error:
            yield fault(mpi_rules.MPI, str(error), "then try again")
            ranks = []
        else:
            hung = any(rank.stage != "done" and rank.exit_code is None and not rank.error for rank in ranks)
            yield mpi_rules.mpi_finding(ranks, plugin=None, timed_out=hung, launcher_output=words)
            later = (
                mpi_rules.later_finding(ranks, timed_out=hung),
                mpi_rules.sum_finding(ranks),
                gpu_rules.local_gpus(ranks),
                mpi_rules.sharing_finding(ranks),
            )
            yield from (finding for finding in later if finding is not None)
    nodes = machine_rules.machines(ranks) or [here]
    yield machine_rules.environment(nodes, here, job=False)
    yield machine_rules.shared_memory(nodes)
    yield machine_rules.open_files(nodes)
    if (clocks := machine_rules.clocks(ranks)) is not None:
        yield clocks
    yield folder_rules.locks(folder, ranks)


def _machine_alone(root: Path) -> Iterator[Finding]:
    here = machine_facts(existing(root))
    yield machine_rules.environment([here], here, job=False)
    yield machine_rules.shared_memory([here])
    yield machine_rules.open_files([here])


def _probe(root: Path) -> FolderFacts:
    folder = existing(root)
    if not str(root).isprintable():
        raise UserError(f"--root: {str(root)!r} has characters that a batch script cannot hold")
    return probe_folder(folder)


@contextlib.contextmanager
def _work_folder(root: Path) -> Iterator[WorkFolder]:
    """A folder on the file system of the runs, removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=".srlhpc-doctor-", dir=existing(root)))
    try:
        yield WorkFolder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
