"""How a step ends, and the limits of the job that end it."""

from __future__ import annotations

from dataclasses import dataclass

from srlhpc.errors import counted
from srlhpc.roles.coordinating.progress import Progress
from srlhpc.specs.experiment import StopSpec


@dataclass(frozen=True)
class StepOutcome:
    """How the step ends."""

    state: str
    reason: str
    message: str = ""


def limit_reached(stop: StopSpec, progress: Progress, now: float) -> StepOutcome | None:
    """The first limit that training has reached; None while it has reached none.

    Args:
        stop: the limits.
        progress: how far training is, over all attempts of the run.
        now: seconds on the clock of `progress`.
    """
    mean = progress.return_mean
    if stop.return_mean is not None and progress.has_full_mean and mean is not None and mean >= stop.return_mean:
        return StepOutcome("finished", "return_mean", f"mean return {mean:.6g} reached {stop.return_mean:g}")
    if stop.steps is not None and progress.steps >= stop.steps:
        return StepOutcome("finished", "steps", f"{counted(progress.steps, 'step')} trained")
    if stop.updates is not None and progress.updates >= stop.updates:
        return StepOutcome("finished", "updates", counted(progress.updates, "update"))
    if stop.hours is not None and progress.seconds(now) >= stop.hours * 3600:
        return StepOutcome("finished", "hours", f"{stop.hours:g} hours of training")
    return None
