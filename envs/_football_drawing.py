"""A football field from above."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from envs._canvas import Canvas
from srlhpc.environment import Array

_GRASS, _LINES, _BALL = (70, 130, 70), (210, 230, 210), (250, 250, 250)
_LEFT, _RIGHT, _RING = (60, 90, 200), (210, 70, 60), (250, 220, 80)
_VIEW = (-1.1, -0.5, 1.1, 0.5)
_WIDTH = 660


def draw(seen: Mapping[str, Any]) -> Array:
    """Both teams and the ball, who is controlled with a ring; uint8 `[height, width, 3]`."""
    canvas = Canvas(_VIEW, _WIDTH, _GRASS)
    for start, end in (((-1, -0.42), (1, -0.42)), ((-1, 0.42), (1, 0.42)), ((-1, -0.42), (-1, 0.42)),
                       ((1, -0.42), (1, 0.42)), ((0, -0.42), (0, 0.42))):  # fmt: skip
        canvas.line(start, end, 0.008, _LINES)
    for side in (-1, 1):
        canvas.line((side, -0.044), (side, 0.044), 0.03, _LINES)
    for team, color in (("left", _LEFT), ("right", _RIGHT)):
        controlled = {int(player) for player in seen[f"{team}_agent_controlled_player"]}
        for place, (x, y) in enumerate(np.asarray(seen[f"{team}_team"])):
            if place in controlled:
                canvas.disc(x, -y, 0.034, _RING)
            canvas.disc(x, -y, 0.025, color)
    x, y, _ = seen["ball"]
    canvas.disc(x, -y, 0.016, _BALL)
    return canvas.picture()
