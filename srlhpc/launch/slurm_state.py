"""The state of a run on Slurm: what its files say and what Slurm says, put together. Pure but for the questions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from srlhpc.launch.jobs import JobState, SlurmJobs

_VERDICTS = {
    "CANCELLED": "cancelled",
    "TIMEOUT": "timed out",
    "DEADLINE": "timed out",
    "NODE_FAIL": "node failed",
    "BOOT_FAIL": "node failed",
    "OUT_OF_MEMORY": "out of memory",
    "PREEMPTED": "preempted",
}
_BY_REASON = {"cancelled": "cancelled", "time_limit": "timed out", "preemption": "preempted"}
_RENEWED_SECONDS = 60.0
"""A lease that young means that the foreman works, even if Slurm is silent."""


class Ending(NamedTuple):
    """State, reason, message."""

    state: str
    reason: str | None
    message: str | None


def slurm_state(
    ids: Sequence[str],
    attempt: Mapping[str, Any] | None,
    end: Mapping[str, Any] | None,
    renewed: float,
    jobs: SlurmJobs,
    *,
    extended: bool = False,
) -> Ending:
    """Where a run stands.

    Args:
        ids: of its jobs, oldest first.
        attempt: how its last attempt was started; None if none was.
        end: how that ended; None if it has not, or was cut off.
        renewed: when its lease was last renewed, seconds since 1970; 0 if nobody holds it.
        jobs: what Slurm says.
        extended: whether a job was submitted after that end, to go on with a finished run.
    """
    written = None if end is None else Ending(str(end.get("state")), end.get("reason"), end.get("message"))
    active = [state for job in ids if (state := jobs.queued(job)) and state.is_active]
    if written and written.state == "finished" and not (active and extended):
        return written
    if active:
        return _active(active, attempt, written)
    job = str((attempt or {}).get("job") or ids[-1])
    if jobs.warning is not None:
        return _without_slurm(written, renewed)
    if written and written.reason != "terminated":
        return Ending(_BY_REASON.get(written.reason or "", written.state), written.reason, written.message)
    return _verdict(jobs.queued(job) or jobs.ended(job), job, attempt, written)


def _active(active: Sequence[JobState], attempt: Mapping[str, Any] | None, written: Ending | None) -> Ending:
    """A job runs or waits."""
    job = next((state for state in active if state.state != "PENDING"), active[0])
    if job.state == "CONFIGURING":
        return Ending("configuring", None, None)
    if job.state not in ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"):
        return Ending("running", None, None)
    if attempt is None or attempt.get("job") != job.id:
        return Ending("pending", job.reason or None, None)
    why = written.reason if written else None
    state = "preempted" if why == "preemption" or job.state == "PREEMPTED" else "requeued"
    return Ending(state, job.reason or None, written.message if written else None)


def _without_slurm(written: Ending | None, renewed: float) -> Ending:
    if written:
        return Ending(_BY_REASON.get(written.reason or "", written.state), written.reason, written.message)
    if time.time() - renewed < _RENEWED_SECONDS:
        return Ending("running", None, None)
    return Ending("pending", "Slurm does not answer", None)


def _verdict(job: JobState | None, number: str, attempt: Mapping[str, Any] | None, written: Ending | None) -> Ending:
    """The job is gone and its foreman has not said why."""
    word = job.state if job else ""
    if word in _VERDICTS:
        message = f"job {number}: {word}" + (f" ({job.reason})" if job and job.reason else "")
        return Ending(_VERDICTS[word], None, message)
    if written:
        return written
    what = "everything was killed, the foreman included" if attempt else "it ended before its first attempt"
    said = f"; Slurm says {word}" if word else ""
    return Ending("failed", "killed", f"job {number}: {what}{said}; its output is in the run's folder slurm/")
