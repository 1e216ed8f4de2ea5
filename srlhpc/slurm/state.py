"""The state of a run on Slurm: what its files say and what Slurm says, put together. Pure but for the questions."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from srlhpc.slurm.jobs import JobState, SlurmJobs
from srlhpc.slurm.states import CANCELLED, COMPLETED, PREEMPTED, TIMED_OUT, state_of

_BY_REASON = {"cancelled": CANCELLED.name, "time_limit": TIMED_OUT.name, "preemption": PREEMPTED.name}
RENEWED_SECONDS = 60.0
"""A lease that was renewed so lately means that the foreman works, even if Slurm is silent."""


class Ending(NamedTuple):
    """State, reason, message."""

    state: str
    reason: str | None
    message: str | None
    speechless_job: str | None = None
    """A job that ended without a word of its foreman's in the run's files; its output may tell why."""


def slurm_state(
    ids: Sequence[str],
    attempt: Mapping[str, Any] | None,
    end: Mapping[str, Any] | None,
    renewed: float,
    jobs: SlurmJobs,
    *,
    extended: bool = False,
    cancelled: Collection[str] = (),
) -> Ending:
    """Where a run stands.

    Args:
        ids: of its jobs, oldest first.
        attempt: how its last attempt was started; None if none was.
        end: how that ended; None if it has not, or was cut off.
        renewed: when its lease was last renewed, seconds since 1970 by this host's clock; 0 if nobody holds it.
        jobs: what Slurm says.
        cancelled: jobs that `srlhpc cancel` took out of the queue.
        extended: whether a job was submitted after that end, to go on with a finished run.
    """
    written = None if end is None else Ending(str(end.get("state")), end.get("reason"), end.get("message"))
    active = [state for job in ids if (state := jobs.queued(job)) and state.is_active]
    if written and written.state == "finished" and not extended:
        return written
    if active:
        return _active(active, attempt, written)
    job = str((attempt or {}).get("job") or ids[-1])
    if jobs.warning is not None:
        return _without_slurm(written, renewed)
    if extended and job != ids[-1] and (ended := jobs.ended(ids[-1])) and ended.state != COMPLETED:
        # What that end says is of an earlier job.
        return _verdict(ended, ids[-1], None, None, was_cancelled=ids[-1] in cancelled)
    if written and (written.state != "interrupted" or written.reason == "cancelled"):
        return _by_reason(written)
    # The last job may have left the queue without an attempt of its own.
    last = job if written is None else ids[-1]
    return _verdict(jobs.ended(last), last, attempt, written, was_cancelled=last in cancelled)


def _active(active: Sequence[JobState], attempt: Mapping[str, Any] | None, written: Ending | None) -> Ending:
    """A job runs or waits."""
    job = next((state for state in active if not state.waits), active[0])
    if word := state_of(job.state).word:
        return Ending(word.name, job.reason or None, None)
    if not job.waits:
        return Ending("running", None, None)
    if job.is_held:
        return Ending("held", job.reason or None, written.message if written else None)
    if attempt is None or attempt.get("job") != job.id:
        return Ending("pending", job.reason or None, None)
    why = written.reason if written else None
    return Ending(
        PREEMPTED.name if why == "preemption" else "requeued", job.reason or None, written.message if written else None
    )


def _without_slurm(written: Ending | None, renewed: float) -> Ending:
    if written and (written.state != "interrupted" or written.reason == "cancelled"):
        return _by_reason(written)
    if written is None and time.time() - renewed < RENEWED_SECONDS:
        return Ending("running", None, None)
    return Ending("unknown", "Slurm does not answer", written.message if written else None)


def _by_reason(written: Ending) -> Ending:
    return written._replace(state=_BY_REASON.get(written.reason or "", written.state))


def _verdict(
    job: JobState | None,
    number: str,
    attempt: Mapping[str, Any] | None,
    written: Ending | None,
    *,
    was_cancelled: bool,
) -> Ending:
    """The job is gone; its foreman has not said why, or not whether it was to go on."""
    word = state_of(job.state).word if job else CANCELLED if was_cancelled else None
    if word is not None:
        verdict = job.verdict if job else f"job {number}: cancelled while it waited"
        return Ending(word.name, None, "; ".join(filter(None, (verdict, written.message if written else None))))
    if written:
        return _by_reason(written)
    what = "everything was killed, the foreman included" if attempt else "it ended before its first attempt"
    said = f"Slurm says {job.verdict}" if job else "Slurm no longer knows the job"
    return Ending("failed", "killed", f"job {number}: {what}; {said}", speechless_job=number)
