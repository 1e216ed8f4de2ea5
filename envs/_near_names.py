"""Names that somebody may have meant, of very many."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near_names(word: str, known: Iterable[str]) -> list[str]:
    """The three nearest at most, the nearest first, whatever their case; empty where none is near."""
    by_lower = {name.lower(): name for name in known}
    return [by_lower[near] for near in difflib.get_close_matches(word.lower(), by_lower, n=3, cutoff=0.7)]
