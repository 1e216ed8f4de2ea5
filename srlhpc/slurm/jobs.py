"""What Slurm says about jobs: squeue for those that it remembers, then sacct, then scontrol."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from srlhpc.errors import ClusterError
from srlhpc.slurm.commands import NoSlurm, SlurmRefused, run_slurm
from srlhpc.slurm.states import RUNNING, state_of
from srlhpc.slurm.time_limit import slurm_minutes

# Job and component, state, reason, time left, nodes, start.
_FIELDS = "%i|%T|%r|%L|%N|%S"
_ACCOUNT = "JobID,State,ExitCode,Reason,NodeList"
_NO_WORDS = ("", "None", "N/A", "None assigned", "(null)", "Unknown")


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
    start: str = ""
    """When it was started, or when Slurm expects to; empty if it does not say."""
    exit_code: str = ""
    """Exit status and signal of the batch script, `1:0`; empty if not known."""

    @property
    def is_active(self) -> bool:
        return not state_of(self.state).has_ended

    @property
    def waits(self) -> bool:
        return state_of(self.state).waits

    @property
    def is_held(self) -> bool:
        """Whether it waits until somebody releases it."""
        row = state_of(self.state)
        # A job that is requeued and held has the state of one that waits; only its reason shows it.
        return row.is_held or (row.waits and ("Held" in self.reason or "held" in self.reason))

    @property
    def runs(self) -> bool:
        return self.state == RUNNING

    @property
    def has_begun(self) -> bool:
        """Whether its ranks may have been started."""
        row = state_of(self.state)
        return row.has_ranks or row.has_ended

    @property
    def verdict(self) -> str:
        """`job 17: FAILED, exit code 0:9, NonZeroExitCode, on cpu1`."""
        parts = [f"job {self.id}: {self.state}"]
        parts += [f"exit code {self.exit_code}"] if self.exit_code not in ("", "0:0") else []
        parts += [self.reason] if self.reason and state_of(self.state).has_reason else []
        parts += [f"on {self.nodes}"] if self.nodes else []
        return ", ".join(parts)


class SlurmJobs:
    """What Slurm says about the jobs of several runs; each of its commands is asked once for all of them.

    Args:
        ids: of the jobs; het jobs by their leader.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self.warning: str | None = None
        """Why Slurm could not be asked."""
        self._ids = sorted(set(ids))
        self._queued: dict[str, JobState] = {}
        self._accounted: dict[str, JobState] | None = None
        if self._ids:
            try:
                self._queued = queued_jobs(self._ids, remembered=True)
            except ClusterError as error:
                self.warning = _in_short(error)

    def queued(self, job: str) -> JobState | None:
        """A job that is in the queue, or still remembered there."""
        return self._queued.get(job)

    def ended(self, job: str) -> JobState | None:
        """How a job ended; None if Slurm has forgotten it or does not answer."""
        if self.warning is not None:
            return None
        try:
            return self._by_accounting(job) or self._queued.get(job) or remembered_job(job)
        except ClusterError as error:
            self.warning = _in_short(error)
            return None

    def _by_accounting(self, job: str) -> JobState | None:
        if self._accounted is None:
            gone = [each for each in self._ids if each not in self._queued or not self._queued[each].is_active]
            self._accounted = accounted_jobs(gone)
        return self._accounted.get(job)


def queued_jobs(ids: Iterable[str], *, remembered: bool = False) -> dict[str, JobState]:
    """Jobs in the queue, by id; of a heterogeneous job, its leader.

    Args:
        ids: of the jobs.
        remembered: also those that have ended and that the controller still knows.

    Raises:
        ClusterError: there is no Slurm, or it does not answer.
    """
    states = ["-t", "all"] if remembered else []
    try:
        output = run_slurm(["squeue", "-h", *states, "-o", _FIELDS, "-j", ",".join(ids)], timeout=5.0).stdout
    except SlurmRefused as error:
        # squeue says so when it knows none of the jobs any more.
        if "Invalid job id" in error.reason:
            return {}
        raise
    return parse_queue(output)


def parse_queue(text: str) -> dict[str, JobState]:
    """Lines `17+0|PENDING|Resources|10:00||N/A`; a het job is its first component, with the reason of any."""
    found: dict[str, JobState] = {}
    for line in text.splitlines():
        parts = [_word(part) for part in line.split("|")]
        if len(parts) != 6:
            continue
        job, _, component = parts[0].partition("+")
        state = JobState(job, *parts[1:])
        found[job] = _together(found.get(job), state, leads=component in ("", "0"))
    return found


def _together(before: JobState | None, now: JobState, *, leads: bool) -> JobState:
    """Two components of a het job: the first one's state, the reason of any, the later start of both."""
    if before is None:
        return now
    # Dates are ISO 8601, so they sort as text, and none comes before any.
    first, other = (now, before) if leads else (before, now)
    return replace(first, reason=first.reason or other.reason, start=max(first.start, other.start))


def component_states(job: str) -> list[str]:
    """Slurm's word on every component of a job that is in the queue.

    Raises:
        ClusterError: Slurm does not know the job, or does not answer.
    """
    return run_slurm(["squeue", "-h", "-o", "%T", "-j", job], timeout=10.0).stdout.split()


def has_lost_components(job: str, components: int) -> bool:
    """Whether a component of a heterogeneous job is no longer running; False while Slurm does not answer."""
    try:
        states = component_states(job)
    except ClusterError:
        return False
    return len(states) < components or set(states) != {RUNNING}


def limit_minutes(job: str) -> int | None:
    """A job's time limit as Slurm has it now; None if there is none, or Slurm does not answer."""
    try:
        output = run_slurm(["squeue", "-h", "-o", "%l", "-j", job], timeout=5.0).stdout.split()
    except ClusterError:
        return None
    return slurm_minutes(output[0]) if output else None


def ended_job(job: str) -> JobState | None:
    """How a job ended, by accounting, else by the controller while it remembers."""
    return accounted_jobs([job]).get(job) or remembered_job(job)


def accounted_jobs(ids: Sequence[str]) -> dict[str, JobState]:
    """Jobs by id, as accounting knows them; none if there is no accounting.

    Raises:
        NoSlurm: there is no Slurm.
    """
    if not ids:
        return {}
    try:
        # -X: jobs without their steps.
        output = run_slurm(["sacct", "-n", "-P", "-X", "-j", ",".join(ids), "-o", _ACCOUNT], timeout=10.0).stdout
    except NoSlurm:
        raise
    except ClusterError:
        # Without accounting the controller is asked.
        return {}
    return parse_accounting(output)


def parse_accounting(text: str) -> dict[str, JobState]:
    """Lines `17+0|CANCELLED by 0|0:0|None|cpu1`; of a het job, its first component."""
    found: dict[str, JobState] = {}
    for line in text.splitlines():
        parts = [_word(part) for part in line.split("|")]
        if len(parts) != 5 or not parts[1]:
            continue
        job, _, component = parts[0].partition("+")
        if component in ("", "0"):
            found[job] = JobState(job, parts[1].split()[0], parts[3], nodes=parts[4], exit_code=parts[2])
    return found


def remembered_job(job: str) -> JobState | None:
    """A job as the controller knows it; None if it has forgotten it.

    Raises:
        ClusterError: there is no Slurm, or it does not answer.
    """
    try:
        return parse_shown(job, run_slurm(["scontrol", "show", "job", "-o", job], timeout=10.0).stdout)
    except SlurmRefused:
        return None


def parse_shown(job: str, text: str) -> JobState | None:
    """The first line of `scontrol show job -o`."""
    words = dict(re.findall(r"(\w+)=(\S+)", text.partition("\n")[0]))
    if "JobState" not in words:
        return None
    reason, nodes, code = (_word(words.get(name, "")) for name in ("Reason", "NodeList", "ExitCode"))
    return JobState(job, words["JobState"], reason, nodes=nodes, exit_code=code)


def _in_short(error: ClusterError) -> str:
    """One line; of the command that it quotes, which may name hundreds of jobs, the first word."""
    return re.sub(r"`(\w+) [^`]*`", r"`\1`", " ".join(str(error).split()))


def _word(text: str) -> str:
    return "" if text.strip() in _NO_WORDS else text.strip()


def job_is_active(job: str) -> bool:
    """Whether a job runs or will run; True when Slurm does not answer, since nobody can tell then."""
    try:
        state = queued_jobs([job]).get(job)
    except NoSlurm:
        return True
    except ClusterError:
        return True
    return state is not None and state.is_active
