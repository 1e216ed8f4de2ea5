"""What single games of OpenSpiel tell of an episode beside its returns; most tell nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Statistics = Callable[[Any], Mapping[str, float]]
"""Numbers of a state in which the game is over."""


def statistics_of(game: Any) -> Statistics:
    """How a game's last state is told."""
    return _OF_GAMES.get(game.get_type().short_name, _nothing)


def _nothing(state: Any) -> Mapping[str, float]:  # noqa: ARG001
    return {}


def _hanabi(state: Any) -> Mapping[str, float]:
    """`score` of 25, which is 0 where the last life was lost (`bombed`), and the `fireworks` that were up all the same,
    which some papers count."""
    lines = str(state).splitlines()
    told = dict(line.split(": ", 1) for line in lines if ": " in line)
    fireworks = sum(int(stack[1:]) for stack in told["Fireworks"].split())
    bombed = int(told["Life tokens"]) == 0
    return {"score": 0 if bombed else fireworks, "bombed": bombed, "fireworks": fireworks}


_OF_GAMES: Mapping[str, Statistics] = {"hanabi": _hanabi}
