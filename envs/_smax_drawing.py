"""A battle of SMAX from above: the package's own pictures need matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from envs._canvas import Canvas
from srlhpc.environment import Array

if TYPE_CHECKING:
    from envs._smax_battles import Unit

_GROUND, _SHOT, _BAR = (48, 52, 60), (240, 200, 90), (20, 20, 24)
_ALLY, _ENEMY, _HEALTH = (80, 140, 240), (220, 80, 70), (110, 210, 110)
_WIDTH = 480


def draw(size: tuple[int, int], units: Sequence[Unit]) -> Array:
    """Allies in blue, enemies in red, what is left of their health above them, lines to those at whom they aim.

    Args:
        size: width and height of the map.
        units: those that are alive.

    Returns:
        uint8 `[height, width, 3]`.
    """
    canvas = Canvas((0.0, 0.0, float(size[0]), float(size[1])), _WIDTH, _GROUND)
    for unit in units:
        if unit.aims_at is not None:
            canvas.line(unit.position, unit.aims_at, 0.1, _SHOT)
    for unit in units:
        (x, y), half = unit.position, unit.radius
        canvas.disc(x, y, half, _ALLY if unit.is_ally else _ENEMY)
        canvas.box(x, y + half + 0.3, (half, 0.12), 0.0, _BAR)
        canvas.box(x - half * (1 - unit.health), y + half + 0.3, (half * unit.health, 0.12), 0.0, _HEALTH)
    return canvas.picture()
