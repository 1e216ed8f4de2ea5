"""Putting a job back into the queue, when that is right and possible."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from srlhpc.errors import ClusterError, counted
from srlhpc.launch.signals import JobSignals
from srlhpc.runs.outcome import Outcome
from srlhpc.slurm.commands import SlurmSilent, run_slurm
from srlhpc.slurm.jobs import component_states
from srlhpc.slurm.states import RUNNING
from srlhpc.specs.cluster import ClusterProfile

_T = TypeVar("_T")

_PATIENCE_SECONDS = 600.0
"""Time for a controller that does not answer: it restarts, or another takes over."""


def refusal(job: str, cluster: ClusterProfile, environment: Mapping[str, str]) -> str | None:
    """Why a job may not go back into the queue once more; None if it may."""
    returns = int(environment.get("SLURM_RESTART_COUNT") or 0)
    if returns < cluster.requeues:
        return None
    times = counted(returns, "time")
    return f"job {job} has been back in the queue {times}, and the profile's requeues allows no more"


def requeue(
    job: str,
    signals: JobSignals,
    *,
    ask: Callable[[str], list[str]] = component_states,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome | None:
    """Requeues a job; returns None then, and else how the job ends instead.

    submitit's own handler is not used: a job that is cancelled just before its `scontrol requeue` would be revived.

    Args:
        job: its id.
        signals: of its foreman.
        ask: what Slurm says of the job's components.
        sleep: between two questions to a controller that is silent.
    """
    try:
        states = _patiently(lambda: ask(job), signals, sleep)
    except ClusterError as error:
        return Outcome("failed", "requeue", f"job {job} was not requeued: {error}")
    if signals.terminated_at is not None or set(states) != {RUNNING}:
        return Outcome("interrupted", "terminated", f"not requeued: job {job} is {'/'.join(states) or 'gone'}")
    try:
        # Slurm itself leaves alone what has been cancelled since the question, and calls that a success.
        _patiently(lambda: run_slurm(["scontrol", "requeue", "incomplete", job]), signals, sleep)
    except ClusterError as error:
        return Outcome("failed", "requeue", f"job {job} could not be requeued: {error}")
    return None


def _patiently(command: Callable[[], _T], signals: JobSignals, sleep: Callable[[float], None]) -> _T:
    """Runs a command of Slurm again while the controller is silent and nobody ends the job."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return command()
        except SlurmSilent:
            if signals.terminated_at is not None or time.monotonic() > deadline:
                raise
        sleep(1.0)
