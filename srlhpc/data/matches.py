"""The messages between groups and the matchmaker. Letters: L matches of a lot, S sides.

| message | field | |
|---|---|---|
| request | `matches` `[L]` int64 | matches that are decided, as many as the header counts |
| | `returns` `[L, S]` float64 | mean return of each side's agents; NaN where none was in the game |
| matches | `matches` `[L]` int64 | numbers of the matches that are dealt |
| | `players` `[L, S]` int64 | updates of the version that plays a side, or LIVE |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from srlhpc.data.layout import Field, Layout

LIVE = -1
"""In place of a version: the side is played by its policy as it is now."""
PLAYERS = "players"
"""Name of the field of requests for actions that says who plays each environment, `[E]` int64."""


def mean_return(returns: Mapping[str, float], agents: Sequence[str]) -> float:
    """Mean return of a side's agents that were in the game; NaN where none was."""
    found = [returns[agent] for agent in agents if agent in returns]
    return sum(found) / len(found) if found else float("nan")


def scored(row: Mapping[str, Any]) -> float:
    """What a player scored in all games of a pairing of an evaluator, a draw half."""
    return 0.5 * float(row["games"] + row["wins"] - row["losses"])


def request_layout(lot: int, sides: int) -> Layout:
    """What a group sends: results."""
    return Layout((Field("matches", (lot,), "int64"), Field("returns", (lot, sides), "float64")))


def matches_layout(lot: int, sides: int) -> Layout:
    """What it gets: a lot."""
    return Layout((Field("matches", (lot,), "int64"), Field("players", (lot, sides), "int64")))
