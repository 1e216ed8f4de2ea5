"""The quadrant's walls: a room in the lower right corner with one or two doors."""

from __future__ import annotations

import numpy as np

from envs.hide_and_seek.walls import Wall, outer_walls, with_door


def quadrant_walls(cells: int, door_dropout: float, random: np.random.Generator) -> list[Wall]:
    """Outer walls and the two inner ones.

    Args:
        cells: cells of a side of the grid; the quadrant has half of them.
        door_dropout: probability that only one inner wall, either of them, has a door.
        random: drawn from.
    """
    size = quadrant_size(cells)
    inner = [Wall(True, cells - size, 0, size), Wall(False, size, cells - size, cells - 1)]
    walls = outer_walls(cells)
    if random.uniform() < door_dropout:
        opened = int(random.integers(2))
        return [*walls, inner[1 - opened], *with_door(inner[opened], (), random)]
    return [*walls, *(piece for wall in inner for piece in with_door(wall, (), random))]


def quadrant_size(cells: int) -> int:
    """Cells of a side of the quadrant."""
    return cells // 2
