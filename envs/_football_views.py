"""What a football player sees: the 115 numbers of the package's `simple115v2`, or its small map of the field.

Letters: P players of a team that are controlled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from srlhpc.environment import Array, FloatArray

NUMBERS = 115
MAP = (4, 72, 96)
"""Layers (own team, other team, ball, the player), height, width."""
_TEAM = 11
_TEAMS = ("left_team", "left_team_direction", "right_team", "right_team_direction")
_BALL = 2 * len(_TEAMS) * _TEAM
_OWNER = _BALL + 6
_ACTIVE = _OWNER + 3
_MODE = _ACTIVE + _TEAM
_NOBODY = -1
_HALF_WIDTH, _HALF_HEIGHT = 1.0, 1.0 / 2.25
"""Half the size of the field."""


def write_numbers(seen: Mapping[str, Any], out: FloatArray) -> None:
    """The numbers of each player of the team called left.

    Positions and directions of both teams (-1 where there are fewer than eleven), position and direction of the ball,
    which team has it, which player one is, the mode of the game.

    Args:
        seen: what the engine shows, from that team's side.
        out: float32 `[P, 115]`, written.
    """
    out[:] = 0.0
    out[:, :_BALL] = _NOBODY
    for place, name in enumerate(_TEAMS):
        values = np.asarray(seen[name]).ravel()
        begin = place * 2 * _TEAM
        out[:, begin : begin + values.size] = values
    out[:, _BALL : _BALL + 3], out[:, _BALL + 3 : _OWNER] = seen["ball"], seen["ball_direction"]
    # Nobody, one's own team, the other one.
    out[:, _OWNER + 1 + seen["ball_owned_team"]] = 1.0
    for player, active in enumerate(seen["left_agent_controlled_player"]):
        if active != _NOBODY:
            out[player, _ACTIVE + active] = 1.0
    out[:, _MODE + seen["game_mode"]] = 1.0


def write_map(seen: Mapping[str, Any], out: Array) -> None:
    """A dot for each player and the ball, uint8 `[P, 4, 72, 96]`, written; args as of `write_numbers`."""
    out[:] = 0
    for layer, name in enumerate(("left_team", "right_team", "ball")):
        rows, columns = _pixels(np.asarray(seen[name]).reshape(-1, 3 if name == "ball" else 2))
        out[:, layer, rows, columns] = 255
    for player, active in enumerate(seen["left_agent_controlled_player"]):
        if active != _NOBODY:
            rows, columns = _pixels(np.asarray(seen["left_team"])[active : active + 1])
            out[player, 3, rows, columns] = 255


def _pixels(points: Array) -> tuple[Array, Array]:
    """Rows and columns of points of the field."""
    _, height, width = MAP
    x, y = points[:, 0], points[:, 1]
    columns = ((x + _HALF_WIDTH) / (2 * _HALF_WIDTH) * width).astype(np.int64)
    rows = ((y + _HALF_HEIGHT) / (2 * _HALF_HEIGHT) * height).astype(np.int64)
    return np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)
