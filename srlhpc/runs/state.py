"""Where a run stands: what its coordinator, its foreman and its lease say, put together."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import read_json
from srlhpc.data.checkpoint_names import updates_of
from srlhpc.data.server_time import age
from srlhpc.errors import counted
from srlhpc.runs.batch_output import BatchOutput, batch_output
from srlhpc.runs.checkpoints import all_checkpoints
from srlhpc.runs.crash_loop import crash_loop
from srlhpc.runs.earlier_jobs import cancelled_jobs, is_after
from srlhpc.runs.lease import Holder, read_lease
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.slurm_output import out_of_memory, slurm_output
from srlhpc.runs.versions import versions_entry
from srlhpc.slurm.jobs import SlurmJobs
from srlhpc.slurm.state import Ending, slurm_state
from srlhpc.slurm.states import OUT_OF_MEMORY

_COUNTERS = ("steps", "agent_steps", "frames", "updates", "version", "episodes", "seconds")
_MEASURES = ("return_mean", "steps_per_second", "policy_lag_mean", "policy_lag_max")
SAID_BY_STATE = ("cancelled", "time_limit", "preemption")
"""Reasons that the state's name gives already: cancelled, timed out, preempted."""
SILENT_SECONDS = 30.0
"""A status that old, of a run that is said to run, is worth a remark."""


def run_state(paths: RunPaths, jobs: SlurmJobs | None = None) -> dict[str, Any]:
    """The state of a run as `status --json` prints it; null for what nobody has reported yet.

    Args:
        paths: the run.
        jobs: what Slurm says of its jobs, if it was asked for several runs at once; None: it is asked now.
    """
    ids = job_ids(paths)
    jobs = SlurmJobs(ids) if jobs is None else jobs
    queued = next((found for job in ids if (found := jobs.queued(job)) and found.is_active), None)
    run = read_json(paths.run) or {}
    status = read_json(paths.status) or {}
    attempt = paths.last_attempt()
    state, reason, message = _ending(paths, attempt, status, ids, jobs)
    number = attempt.number if attempt else 0
    # Between two attempts of a job the last one's status is still there.
    ours = status.get("attempt") == number and not (state == "running" and attempt and attempt.end.exists())
    checkpoints = all_checkpoints(paths)
    running = state == "running"
    return {
        "run": run.get("id", paths.name),
        "name": paths.name,
        "job": run.get("job"),
        "slurm_job": queued.id if queued else (ids[-1] if ids else None),
        "nodes": queued.nodes if queued else None,
        "time_left": queued.time_left if queued and state == "running" else None,
        "seed": run.get("seed"),
        "state": state,
        "reason": reason,
        "message": message,
        "phase": (status.get("phase") if ours else "starting") if running else None,
        "attempt": number,
        **{key: status.get(key, 0) for key in _COUNTERS},
        **{key: status.get(key) for key in _MEASURES},
        "policy_lag": status.get("policy_lag", {}),
        "episode": status.get("episode", {}),
        "roles": status.get("roles", {}),
        "timing": status.get("timing", {}),
        "bottleneck": status.get("bottleneck"),
        "ranks_planned": _ranks_planned(paths, attempt),
        "ranks_alive": (status.get("ranks_alive", 0) if ours else 0) if running else 0,
        "ranks": status.get("ranks") if ours and running else [],
        "warnings": (status.get("warnings") or []) if ours else [],
        "crash_loop": loop.text if state in ("running", "failed") and (loop := crash_loop(paths)) else None,
        "last_checkpoint": checkpoints[-1].name if checkpoints else None,
        "last_checkpoint_updates": updates_of(checkpoints[-1]) if checkpoints else None,
        "versions": versions_entry(paths),
        "matches": status.get("matches"),
        "evaluation": status.get("evaluation"),
        "time": status.get("time"),
        "folder": str(paths.folder),
    }


def job_ids(paths: RunPaths) -> list[str]:
    """Slurm jobs of the run, oldest first; none for a local run."""
    return [str(job["id"]) for job in (read_json(paths.slurm) or {}).get("jobs", [])]


def is_running(paths: RunPaths) -> Holder | None:
    """Who runs it, if somebody does."""
    holder = read_lease(paths.lease)
    return holder if holder and holder.is_alive() else None


def goes_on(paths: RunPaths) -> bool:
    """Whether somebody runs it, or a job in the queue will."""
    ids = job_ids(paths)
    jobs = SlurmJobs(ids)
    waits = any((found := jobs.queued(job)) and found.is_active for job in ids)
    return waits or is_running(paths) is not None


def silence(state: Mapping[str, Any]) -> float | None:
    """Seconds since a running run's coordinator last wrote, if that is long ago."""
    if state["state"] != "running" or not state.get("time"):
        return None
    seconds = age(Path(state["folder"]) / "status.json")
    return seconds if seconds is not None and seconds > SILENT_SECONDS else None


def silent_ranks(state: Mapping[str, Any]) -> list[str]:
    """Ranks that live and have reported nothing for long, in words; a rank hangs longer than it takes to step."""
    return [
        f"{rank['label']} (rank {rank['rank']}, {rank.get('host', '')}) has reported nothing for "
        f"{rank['silent_seconds']:.0f} s; it counts as dead after {rank['silence_limit_seconds']:.0f} s"
        for rank in state["ranks"] or []
        if rank.get("alive") and rank.get("silent_seconds", 0.0) > SILENT_SECONDS and "silence_limit_seconds" in rank
    ]


def _extended(paths: RunPaths, attempt: AttemptPaths | None, end: Mapping[str, Any] | None) -> bool:
    """Whether a job was submitted after the last attempt's end."""
    jobs = (read_json(paths.slurm) or {}).get("jobs", [])
    return attempt is not None and end is not None and any(is_after(job, attempt, end) for job in jobs)


def last_output(paths: RunPaths, job: str) -> BatchOutput | None:
    """What a job's batch script and foreman wrote at their end."""
    python = ((read_json(paths.slurm) or {}).get("cluster") or {}).get("python")
    return batch_output(paths, job, python or sys.executable)


def _with_last_output(paths: RunPaths, ending: Ending) -> str | None:
    words = last_output(paths, ending.speechless_job) if ending.speechless_job else None
    return ending.message if words is None else f"{ending.message}; its last words: {words.line}"


def _ranks_planned(paths: RunPaths, attempt: AttemptPaths | None) -> int | None:
    if attempt:
        return (read_json(attempt.attempt) or {}).get("ranks")
    components = (read_json(paths.allocation) or {}).get("components", [])
    return sum(component["ranks"] for component in components) or None


def _ending(
    paths: RunPaths, attempt: AttemptPaths | None, status: Mapping[str, Any], ids: Sequence[str], jobs: SlurmJobs
) -> tuple[str, str | None, str | None]:
    """State, reason, message."""
    holder = read_lease(paths.lease)
    started = read_json(attempt.attempt) if attempt else None
    waits = any((found := jobs.queued(job)) and found.is_active for job in ids)
    # Slurm knows more where the last attempt was a job's, or the next one will be. A holder without a job has resumed
    # the run on this machine.
    if ids and (waits or started is None or started.get("job")) and not (holder and holder.job is None):
        end = (read_json(attempt.end) or read_json(attempt.outcome)) if attempt else None
        renewed = time.time() - (age(paths.lease) or 0.0) if holder else 0.0
        extended, cancelled = _extended(paths, attempt, end), cancelled_jobs(paths)
        ending = slurm_state(ids, started, end, renewed, jobs, extended=extended, cancelled=cancelled)
        if ending.state == "failed" and (words := out_of_memory(slurm_output(paths, attempt))):
            return OUT_OF_MEMORY.name, None, f"{words}; {ending.message}"
        return ending.state, ending.reason, _with_last_output(paths, ending)
    if holder and holder.is_alive():
        return "running", None, None
    if attempt is None:
        return ("failed", "killed", "it was killed before its first start") if holder else ("pending", None, None)
    end = read_json(attempt.end) or read_json(attempt.outcome)
    if end:
        return str(end.get("state")), end.get("reason"), end.get("message")
    after = f" after {counted(status['updates'], 'update')}" if status.get("updates") else ""
    if (started or {}).get("serial"):
        return "failed", "killed", f"its process ended without a word{after}"
    return "failed", "killed", f"everything was killed{after}, the foreman included"
