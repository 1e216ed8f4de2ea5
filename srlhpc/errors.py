"""What a user or a cluster can cause, and wording that messages share."""

from __future__ import annotations

import difflib
from typing import ClassVar, NamedTuple


class FailureKind(NamedTuple):
    """What a run has failed of."""

    name: str
    advice: str
    """What to do about it."""
    comes_again: bool = False
    """Whether it would happen again at once, so that no restart helps."""
    is_of_all: bool = False
    """Whether no single rank is the cause: ranks that died were ended because of it."""


_KINDS = (
    FailureKind("environment", "The environment raised this; put it right there."),
    FailureKind(
        "diverged", "Lower the learning rate, or clip gradients and rewards. All checkpoints were written before it."
    ),
    FailureKind("user", "Put it right in the job file.", comes_again=True),
    FailureKind(
        "world",
        "Set srun_mpi in the cluster profile to that plugin (`srun --mpi=list` names those there are), or mpi.",
        comes_again=True,
    ),
    FailureKind(
        "difference",
        "Give all nodes the same installation, then resume; `srlhpc doctor --cluster NAME` compares nodes.",
        comes_again=True,
    ),
    FailureKind(
        "gpu", "Leave the node out or ask for fewer GPUs, then resume with `--cluster NAME`.", comes_again=True
    ),
    FailureKind("cluster", "The logs of all ranks have more; if it happens again, check the machine."),
    FailureKind(
        "standstill",
        "Roles waited for each other, which must not be: resume, and report it with the logs of all ranks.",
        is_of_all=True,
    ),
    FailureKind(
        "stuck",
        "The logs of the ranks that are named show what they were doing; resume from the last checkpoint.",
        is_of_all=True,
    ),
)
FAILURE_KINDS = {kind.name: kind for kind in _KINDS}
OTHER = FailureKind("exception", "The rank's log has more.")


class KnownError(Exception):
    """Base of the exceptions that say what kind of failure they are."""

    kind: ClassVar[str]
    """A name in `FAILURE_KINDS`."""


class UserError(KnownError, ValueError):
    """Something that the user can put right; shown without a traceback, exit code 2."""

    kind = "user"


class ClusterError(KnownError, RuntimeError):
    """Something that the cluster did or refused; shown without a traceback, exit code 3."""

    kind = "cluster"


def kind_named(name: str) -> FailureKind:
    """The kind that a rank wrote down."""
    return FAILURE_KINDS.get(name, OTHER)


def kind_of(error: BaseException) -> str:
    """One word for `why`, the coordinator and the foreman."""
    return error.kind if isinstance(error, KnownError) else OTHER.name


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: `1 rank`, `12,345 ranks`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def rounded(number: float) -> str:
    """A mean that people read, such as a policy lag, in two digits or as a whole number: `0.37`, `3.2`, `2,898`."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def did_you_mean(word: str, known: list[str]) -> str:
    """Suggests the known word that is nearest: `; did you mean 'ranks'?`; all known words where none is near."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; known are: {', '.join(sorted(known))}" if known else ""
