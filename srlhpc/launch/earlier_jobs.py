"""What earlier jobs, and earlier incarnations of this one, have left of a run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from srlhpc.data.atomic import read_json
from srlhpc.launch.ending import Outcome, write_end
from srlhpc.launch.rundir import AttemptPaths, RunPaths


def close_lost_attempt(paths: RunPaths, job: str) -> AttemptPaths | None:
    """Writes the end of an attempt that was cut off with its foreman, and returns it; None if there is none."""
    last = paths.last_attempt()
    if last and read_json(last.end) is None and (read_json(last.attempt) or {}).get("job"):
        outcome = Outcome.written(last) or Outcome(
            "interrupted", "requeued", f"everything was killed, the foreman included; job {job} goes on"
        )
        write_end(last, outcome, time.time())
        return last
    return None


def ended_before(paths: RunPaths, job: str, jobs: Sequence[Mapping[str, Any]]) -> Outcome | None:
    """How an earlier job has ended the run for good; None if there is something left to do.

    Args:
        paths: the run.
        job: the id of the one that asks.
        jobs: all that were submitted for the run, as `slurm.json` lists them.
    """
    last = paths.last_attempt()
    end = (read_json(last.end) if last else None) or {}
    submitted = max((each["submitted"] for each in jobs if str(each["id"]) == job), default=0.0)
    # A job that was submitted after the end is to extend the run.
    if end.get("state") == "finished" and end.get("time", 0.0) > submitted:
        return Outcome(end["state"], str(end.get("reason", "")), str(end.get("message", "")))
    return None


def cancelled_jobs(paths: RunPaths) -> set[str]:
    """Jobs of which `srlhpc cancel` has written down that they are to end."""
    return {str(job["id"]) for job in (read_json(paths.slurm) or {}).get("jobs", []) if "cancelled" in job}
