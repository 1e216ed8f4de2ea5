"""Walls as segments of grid cells: doors in them, crossings, and the rectangles they stand on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from envs.hide_and_seek.settings import CELLS, FLOOR
from srlhpc.environment import BoolArray

CELL = FLOOR / CELLS
"""Side of a cell."""
THICKNESS = CELL / 2
INNER_HEIGHT = 0.5
OUTER_HEIGHT = 4.0
DOOR_CELLS = 2
"""Cells of a door."""

Rectangle = tuple[float, float, float, float]
"""Left, lower, right, upper edge."""


class Wall(NamedTuple):
    """A straight row of cells."""

    vertical: bool
    line: int
    """Cell across: the column of a vertical wall, the row of a horizontal one."""
    start: int
    """First cell along."""
    end: int
    """Last cell along, included."""
    outer: bool = False
    """Whether it is one of the walls around the floor."""

    @property
    def length(self) -> int:
        return self.end - self.start

    @property
    def height(self) -> float:
        return OUTER_HEIGHT if self.outer else INNER_HEIGHT

    def touches(self, line: int, along: int) -> bool:
        """Whether the cell that is `along` on a perpendicular wall and `line` across it belongs to this wall."""
        return along == self.line and self.start <= line <= self.end

    def crosses(self, other: Wall) -> bool:
        """Whether two walls go through each other; touching is no crossing."""
        if self.vertical == other.vertical:
            return False
        return self.start < other.line < self.end and other.start < self.line < other.end

    def rectangle(self) -> Rectangle:
        """Where it stands: along the middle of its cells, shortened so that perpendicular walls only touch."""
        across = ((self.line + 0.5) * CELL - THICKNESS / 2, (self.line + 0.5) * CELL + THICKNESS / 2)
        along = ((self.start + 0.5) * CELL + THICKNESS / 2, (self.end + 0.5) * CELL - THICKNESS / 2)
        (left, right), (lower, upper) = (across, along) if self.vertical else (along, across)
        return left, lower, right, upper


def outer_walls(cells: int) -> list[Wall]:
    """The four walls around a grid of so many cells a side."""
    last = cells - 1
    return [Wall(vertical, line, 0, last, outer=True) for line in (0, last) for vertical in (True, False)]


def with_door(wall: Wall, joints: Iterable[int], random: np.random.Generator) -> list[Wall]:
    """The pieces beside a door in a wall.

    The door is in one of the stretches between neighbouring joints that are long enough, at a uniform offset of at
    least one cell from both ends; without such a stretch the wall stays whole. Pieces of one cell are dropped.

    Args:
        wall: the wall.
        joints: cells along the wall where others meet it; its ends are joints anyway.
        random: drawn from.
    """
    ends = sorted({wall.start, wall.end, *joints})
    stretches = [(a, b) for a, b in zip(ends, ends[1:], strict=False) if b - a > DOOR_CELLS]
    if not stretches:
        return [wall]
    start, end = stretches[int(random.integers(len(stretches)))]
    first = start + int(random.integers(1, end - start - DOOR_CELLS + 1))
    pieces = wall._replace(end=first - 1), wall._replace(start=first + DOOR_CELLS)
    return [piece for piece in pieces if piece.length > 0]


def mark(occupied: BoolArray, walls: Iterable[Wall]) -> None:
    """Marks the cells of walls in the placement grid `[x, y]`."""
    for wall in walls:
        along = slice(wall.start, wall.end + 1)
        occupied[(wall.line, along) if wall.vertical else (along, wall.line)] = True
