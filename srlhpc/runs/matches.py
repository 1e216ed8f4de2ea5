"""What a status says of matches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srlhpc.errors import counted


def match_lines(state: Mapping[str, Any]) -> list[str]:
    """Who met the past how often and won how much of it, for people; empty without matches."""
    matches = state.get("matches")
    if not matches:
        return []
    lines = [
        f"  {found['learner']} against {counted(found['versions'], 'version')} of {found['opponent']}: "
        f"won {_percent(found['win_rate'])} of {counted(found['games'], 'match', 'matches')}"
        for found in matches["past"]
    ]
    self_play = f", {counted(matches['self_play'], 'match', 'matches')} of self-play" if matches["self_play"] else ""
    return [*lines, f"  matchmaker: {_percent(matches['busy'])} of a core{self_play}"]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"
