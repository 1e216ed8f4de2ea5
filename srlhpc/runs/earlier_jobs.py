"""What earlier jobs, and earlier restarts of this one, have left of a run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from srlhpc.data.atomic import read_json
from srlhpc.runs.outcome import Outcome, write_end
from srlhpc.runs.paths import AttemptPaths, RunPaths


def close_lost_attempt(paths: RunPaths, job: str) -> AttemptPaths | None:
    """Writes the end of an attempt that was cut off with its foreman, and returns it; None if there is none."""
    last = paths.last_attempt()
    if last and read_json(last.end) is None and (read_json(last.attempt) or {}).get("job"):
        outcome = Outcome.written(last) or Outcome(
            "interrupted", "requeued", f"everything was killed, the foreman included; job {job} resumes it"
        )
        write_end(last, outcome, time.time())
        return last
    return None


def ended_attempt(paths: RunPaths) -> int:
    """The number of the last attempt, if it has ended; else of the one before it; 0 for none."""
    last = paths.last_attempt()
    if last is None:
        return 0
    return last.number if read_json(last.end) else last.number - 1


def is_after(job: Mapping[str, Any], attempt: AttemptPaths, end: Mapping[str, Any]) -> bool:
    """Whether a job was submitted after an attempt had ended.

    Whoever submits notes the attempt, since the clocks of two hosts may differ; jobs of an older srlhpc have times.
    """
    if "after_attempt" in job:
        return int(job["after_attempt"]) >= attempt.number
    return float(job.get("submitted", 0.0)) > float(end.get("time", 0.0))


def ended_before(paths: RunPaths, job: str, jobs: Sequence[Mapping[str, Any]]) -> Outcome | None:
    """How an earlier job has ended the run for good; None if there is something left to do.

    Args:
        paths: the run.
        job: the id of the one that asks.
        jobs: all that were submitted for the run, as `slurm.json` lists them.
    """
    last = paths.last_attempt()
    end = (read_json(last.end) if last else None) or {}
    # A job that was submitted after the end is to extend the run.
    extends = any(last and is_after(each, last, end) for each in jobs if str(each["id"]) == job)
    if end.get("state") == "finished" and not extends:
        return Outcome(end["state"], str(end.get("reason", "")), str(end.get("message", "")))
    return None


def cancelled_jobs(paths: RunPaths) -> set[str]:
    """Jobs of which `srlhpc cancel` has written down that they are to end."""
    return {str(job["id"]) for job in (read_json(paths.slurm) or {}).get("jobs", []) if "cancelled" in job}
