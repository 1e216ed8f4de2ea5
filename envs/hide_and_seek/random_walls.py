"""Random rooms: walls that split others until there are enough rooms, each with a door."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from envs.hide_and_seek.placement import PlacementFailed
from envs.hide_and_seek.walls import Wall, outer_walls, with_door

MIN_ROOM_CELLS = 6
"""A new wall is more cells than this from the joints of the wall that it starts from."""
SPLIT_TRIES = 10
"""Draws for one new wall before all inner walls are dropped."""
FAILURES = 10
"""Times that the inner walls may be dropped before the world is drawn anew."""


@dataclass
class _Joined:
    """A wall and where others meet it."""

    wall: Wall
    below: list[int] = field(default_factory=list)
    """Cells along it where walls on its left or lower side end."""
    above: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.below += (self.wall.start, self.wall.end)
        self.above += (self.wall.start, self.wall.end)

    def meet(self, other: Wall) -> None:
        """Records a joint if the other wall is perpendicular and ends on this one."""
        if self.wall.vertical == other.vertical:
            return
        if self.wall.touches(other.line, other.start):
            self.above.append(other.line)
        elif self.wall.touches(other.line, other.end):
            self.below.append(other.line)


def random_walls(
    cells: int, rooms: tuple[int, int], outer_probability: float, random: np.random.Generator
) -> list[Wall]:
    """Walls of one to several rooms.

    Args:
        cells: cells of a side of the grid.
        rooms: lowest and highest number of rooms.
        outer_probability: probability that the outer walls are built; inner walls meet them either way.
        random: drawn from.

    Raises:
        PlacementFailed: the rooms did not fit.
    """
    number = int(random.integers(rooms[0], rooms[1] + 1))
    inner = _split(cells, number - 1, random)
    pieces = [piece for joined in inner for piece in with_door(joined.wall, joined.below + joined.above, random)]
    return [*(outer_walls(cells) if random.uniform() < outer_probability else ()), *pieces]


def _split(cells: int, number: int, random: np.random.Generator) -> list[_Joined]:
    """So many inner walls with their joints."""
    for _ in range(FAILURES):
        walls = [_Joined(wall) for wall in outer_walls(cells)]
        while len(walls) < 4 + number:
            new = _new_wall(walls, random)
            if new is None:
                break
            walls.append(new)
        else:
            return walls[4:]
    raise PlacementFailed


def _new_wall(walls: list[_Joined], random: np.random.Generator) -> _Joined | None:
    """A wall between two parallel ones, joined to all that it touches; None if none was found."""
    for _ in range(SPLIT_TRIES):
        start = walls[int(random.integers(len(walls)))]
        proposals = [_proposal(start, other.wall, random) for other in walls if other is not start]
        fitting = [new for new in proposals if new and not any(new.crosses(each.wall) for each in walls)]
        if fitting:
            new = _Joined(fitting[int(random.integers(len(fitting)))])
            for each in walls:
                each.meet(new.wall)
                new.meet(each.wall)
            return new
    return None


def _proposal(start: _Joined, to: Wall, random: np.random.Generator) -> Wall | None:
    """A perpendicular wall from a uniform cell of one wall to another; None if it misses that or comes too near."""
    wall = start.wall
    if wall.vertical != to.vertical or wall.length < 2:
        return None
    at = wall.start + int(random.integers(1, wall.length))
    joints = start.below if to.line < wall.line else start.above
    if not to.start <= at <= to.end or min(abs(at - joint) for joint in joints) <= MIN_ROOM_CELLS:
        return None
    return Wall(not wall.vertical, at, min(wall.line, to.line), max(wall.line, to.line))
