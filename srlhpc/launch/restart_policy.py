"""What a foreman on Slurm does after an attempt: end, start the ranks again, or go back into the queue. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from srlhpc.errors import kind_named
from srlhpc.runs.outcome import Outcome

Decision = Literal["end", "restart", "requeue"]

_NOT_BY_RESTARTS = ("checkpoint", "removed", "lease")
"""Reasons that no rank has caused: the end has no checkpoint, the run's folder is gone, or somebody else runs it."""
_LONGEST_PAUSE_SECONDS = 30.0
_MOST_LATELY = 2
"""How many times `restarts_allowed` are too many within `LATELY_SECONDS`, even if training got further each time."""


@dataclass(frozen=True)
class AttemptEnd:
    """What is known when the ranks are gone."""

    outcome: Outcome
    kind: str
    """Kind of the first failure, as the rank wrote it; empty if there is none."""
    warned: bool
    """Whether the end of the job was announced: time limit or pre-emption."""
    terminated: bool
    """Whether the foreman was asked to end: cancelled, or Slurm is ending the job."""
    restarts: int
    """Restarts in this job since training last got further."""
    restarts_allowed: int
    may_requeue: bool
    restarts_lately: int
    """Restarts in this job within `LATELY_SECONDS`, whether or not training got further between them."""
    got_further: bool
    """Whether this job has written a checkpoint that was not there when it began."""


def decide(now: AttemptEnd) -> Decision:
    """Decides. A job that somebody ends is never put back into the queue: that would revive a cancelled one."""
    if now.outcome.state == "finished" or now.terminated or now.outcome.reason in ("removed", "lease"):
        return "end"
    if now.warned:
        return "requeue" if now.may_requeue and not kind_named(now.kind).comes_again else "end"
    if now.outcome.state == "interrupted" or kind_named(now.kind).comes_again or now.outcome.reason in _NOT_BY_RESTARTS:
        return "end"
    if is_endless(now):
        return "end"
    if now.restarts < now.restarts_allowed:
        return "restart"
    return "requeue" if now.may_requeue and now.got_further else "end"


def is_endless(now: AttemptEnd) -> bool:
    """Whether the ranks crash again and again: each time they get a little further, and pay a start for it."""
    return now.restarts_lately >= _MOST_LATELY * now.restarts_allowed > 0


def pause_seconds(restarts: int) -> float:
    """Pause before a restart: none before the first, then twice as long each time."""
    return min(_LONGEST_PAUSE_SECONDS, 2.0 ** (restarts - 1)) if restarts else 0.0
