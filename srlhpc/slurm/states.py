"""The states that Slurm gives a job: one row for each says what it means for a run, and what helps. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class RunWord:
    """What a run is called because of its job's state; several states of Slurm may give the same word."""

    name: str
    meaning: str = ""
    """What it means, where no message tells more."""
    advice: str = ""
    """What to do; empty where nothing has gone wrong."""
    ends_ranks: bool = False
    """Whether ranks that died then died because of it."""
    is_alarming: bool = False
    """Whether `status` remarks on it."""


CANCELLED = RunWord("cancelled", "somebody has cancelled it", ends_ranks=True)
TIMED_OUT = RunWord(
    "timed out",
    advice="the time limit was reached; resume, or set requeue in the profile, or ask for more --chain or --time",
    ends_ranks=True,
    is_alarming=True,
)
NODE_FAILED = RunWord(
    "node failed",
    advice="a node went down; resume, and tell the administrators if it happens again",
    ends_ranks=True,
    is_alarming=True,
)
OUT_OF_MEMORY = RunWord(
    "out of memory",
    advice="raise memory_mb_per_rank in the cluster profile, or use fewer environments or a smaller batch",
    ends_ranks=True,
    is_alarming=True,
)
PREEMPTED = RunWord(
    "preempted", advice="a job of higher priority took the nodes; set requeue in the cluster profile, or resume"
)
CONFIGURING = RunWord("configuring", "its nodes are being made ready")
ENDING = RunWord("ending", "its job is ending just now; ask again in a moment")
SUSPENDED = RunWord("suspended", "Slurm has suspended its job; it continues when the job is resumed")


@dataclass(frozen=True)
class SlurmState:
    """One state of a job."""

    name: str
    """Slurm's word."""
    has_ended: bool = False
    waits: bool = False
    """Whether it is in the queue."""
    is_held: bool = False
    """Whether it waits until somebody releases it, whatever reason is given."""
    has_ranks: bool = True
    """Whether its ranks may run now."""
    word: RunWord | None = None
    """What the run is called; None: what its files and the queue say."""
    has_reason: bool = True
    """Whether the reason that Slurm gives belongs to this state, and not to an earlier one."""


def _ended(name: str, word: RunWord | None = None, *, has_reason: bool = True) -> SlurmState:
    return SlurmState(name, has_ended=True, has_ranks=False, word=word, has_reason=has_reason)


def _waiting(name: str, *, is_held: bool = False) -> SlurmState:
    return SlurmState(name, waits=True, is_held=is_held, has_ranks=False)


RUNNING, COMPLETED = "RUNNING", "COMPLETED"
_ROWS = (
    _waiting("PENDING"),
    _waiting("REQUEUED"),
    _waiting("REQUEUE_FED"),
    _waiting("REQUEUE_HOLD", is_held=True),
    _waiting("SPECIAL_EXIT", is_held=True),
    _waiting("RESV_DEL_HOLD", is_held=True),
    SlurmState("CONFIGURING", word=CONFIGURING, has_ranks=False),
    SlurmState(RUNNING),
    SlurmState("SUSPENDED", word=SUSPENDED),
    SlurmState("STOPPED", word=SUSPENDED),
    SlurmState("COMPLETING", word=ENDING),
    _ended(COMPLETED),
    _ended("FAILED"),
    _ended("REVOKED"),
    # The reason of a cancelled job is why it waited before.
    _ended("CANCELLED", CANCELLED, has_reason=False),
    _ended("TIMEOUT", TIMED_OUT),
    _ended("DEADLINE", TIMED_OUT),
    _ended("NODE_FAIL", NODE_FAILED),
    _ended("BOOT_FAIL", NODE_FAILED),
    _ended("OUT_OF_MEMORY", OUT_OF_MEMORY),
    _ended("PREEMPTED", PREEMPTED),
)
STATES = {row.name: row for row in _ROWS}
WORDS = {row.word.name: row.word for row in _ROWS if row.word is not None}


def state_of(name: str) -> SlurmState:
    """The row of a state; one that is not known belongs to a job that is neither in the queue nor at its end."""
    return STATES.get(name) or SlurmState(name)


def words_that(holds: Callable[[RunWord], object]) -> tuple[str, ...]:
    """The words of runs of which something holds."""
    return tuple(name for name, word in WORDS.items() if holds(word))
