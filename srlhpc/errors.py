"""What a user or a cluster can cause, and wording that messages share."""

from __future__ import annotations

import difflib


class UserError(ValueError):
    """Something that the user can put right; shown without a traceback, exit code 2."""


class ClusterError(RuntimeError):
    """Something that the cluster did or refused; shown without a traceback, exit code 3."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: `1 rank`, `12,345 ranks`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def did_you_mean(word: str, known: list[str]) -> str:
    """Suggests the known word that is nearest: `; did you mean 'ranks'?`; all known words where none is near."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; known are: {', '.join(sorted(known))}" if known else ""
