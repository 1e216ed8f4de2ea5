"""What Slurm says about jobs: squeue for those that live, then sacct, then scontrol for those that ended."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from srlhpc.launch.slurm import NoSlurm, SlurmRefused, run_slurm
from srlhpc.objects import ClusterError

_FIELDS = "%i|%T|%r|%L|%N"
_ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}


@dataclass(frozen=True)
class JobState:
    """One job, by Slurm."""

    id: str
    state: str
    """Slurm's word: PENDING, RUNNING, TIMEOUT, ..."""
    reason: str = ""
    """Why it is pending."""
    time_left: str = ""
    nodes: str = ""

    @property
    def is_active(self) -> bool:
        return self.state not in _ENDED


class SlurmJobs:
    """What Slurm says about the jobs of several runs; squeue is asked once for all of them.

    Args:
        ids: of the jobs; het jobs by their leader.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self.warning: str | None = None
        """Why Slurm could not be asked."""
        self._queued: dict[str, JobState] = {}
        wanted = sorted(set(ids))
        if wanted:
            try:
                self._queued = queued_jobs(wanted)
            except ClusterError as error:
                self.warning = str(error).splitlines()[0]

    def queued(self, job: str) -> JobState | None:
        """A job that is in the queue, or still remembered there."""
        return self._queued.get(job)

    def ended(self, job: str) -> JobState | None:
        """How a job ended; None if Slurm has forgotten it or does not answer."""
        if self.warning is not None:
            return None
        try:
            return ended_job(job)
        except ClusterError as error:
            self.warning = str(error).splitlines()[0]
            return None


def queued_jobs(ids: Iterable[str]) -> dict[str, JobState]:
    """Jobs in the queue, by id; of a heterogeneous job, its leader.

    Raises:
        ClusterError: there is no Slurm, or it does not answer.
    """
    try:
        said = run_slurm(["squeue", "-h", "-o", _FIELDS, "-j", ",".join(ids)], timeout=5.0).stdout
    except SlurmRefused as error:
        if "Invalid job id" in error.reason:
            return {}
        raise
    return parse_queue(said)


def parse_queue(text: str) -> dict[str, JobState]:
    """Lines `17+0|PENDING|Resources|10:00|`; the components of a het job but the first are left out."""
    found = {}
    for line in text.splitlines():
        parts = line.strip().split("|")
        job, _, component = parts[0].partition("+")
        if len(parts) == 5 and component in ("", "0"):
            found[job] = JobState(job, parts[1], "" if parts[2] == "None" else parts[2], parts[3], parts[4])
    return found


def component_states(job: str) -> list[str]:
    """Slurm's word on every component of a job that is in the queue.

    Raises:
        ClusterError: Slurm does not know the job, or does not answer.
    """
    return run_slurm(["squeue", "-h", "-o", "%T", "-j", job], timeout=10.0).stdout.split()


def ended_job(job: str) -> JobState | None:
    """How a job ended, by accounting, else by the controller while it remembers."""
    try:
        said = run_slurm(["sacct", "-n", "-P", "-X", "-j", job, "-o", "State"], timeout=10.0).stdout.split("\n")
        words = [line.split()[0] for line in said if line.strip()]
        if words:
            return JobState(job, words[0])
    except NoSlurm:
        raise
    except ClusterError:
        # Without accounting the controller is asked.
        pass
    try:
        text = run_slurm(["scontrol", "show", "job", "-o", job], timeout=10.0).stdout
    except SlurmRefused:
        return None
    match = re.search(r"JobState=(\S+) Reason=(\S+)", text)
    return JobState(job, match[1], match[2]) if match else None


def job_is_active(job: str) -> bool:
    """Whether a job runs or will run; True when Slurm does not answer, since nobody can tell then."""
    try:
        state = queued_jobs([job]).get(job)
    except NoSlurm:
        return True
    except ClusterError:
        return True
    return state is not None and state.is_active
