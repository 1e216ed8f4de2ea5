"""Finding free places on the grid: rules that draw a cell, and rejection of cells that are taken."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from envs.hide_and_seek.walls import CELL
from srlhpc.environment import BoolArray

TRIES = 10
"""Draws before a placement fails."""

Pair = tuple[int, int]
Corner = tuple[float, float]
Rule = Callable[[np.random.Generator, Pair], Pair]
"""Draws the lower left cell of an object of so many cells."""


class PlacementFailed(Exception):
    """No free place was found: the world has to be drawn anew."""


def cells_of(size: float) -> int:
    """Cells that an edge needs."""
    return math.ceil(size / CELL)


def uniform(cells: int) -> Rule:
    """Anywhere within the outer walls of a grid of so many cells a side."""

    def draw(random: np.random.Generator, n: Pair) -> Pair:
        return _between(random, (1, cells - n[0] - 2), (1, cells - n[1] - 2))

    return draw


def in_quadrant(cells: int, quadrant: int) -> Rule:
    """Within the lower right quadrant of so many cells a side."""

    def draw(random: np.random.Generator, n: Pair) -> Pair:
        return _between(random, (cells - quadrant, cells - n[0] - 2), (1, quadrant - n[1] - 2))

    return draw


def outside_quadrant(cells: int, quadrant: int) -> Rule:
    """The rule that an object lies in one of the other three quadrants."""

    def draw(random: np.random.Generator, n: Pair) -> Pair:
        left, right = (1, cells - quadrant - n[0] - 2), (cells - quadrant, cells - n[0] - 2)
        lower, upper = (1, quadrant - n[1] - 2), (quadrant, cells - n[1] - 2)
        return _between(random, *((left, lower), (left, upper), (right, upper))[int(random.integers(3))])

    return draw


def near(cells: int, anchor: Pair, radius: int) -> Rule:
    """The rule that an object lies at most so many cells from an anchor per axis, whatever the size of the object."""
    ranges = tuple((max(1, a - radius), min(cells - 1, a + radius) - 1) for a in anchor)

    def draw(random: np.random.Generator, n: Pair) -> Pair:  # noqa: ARG001
        return _between(random, *ranges)

    return draw


def _between(random: np.random.Generator, x: Pair, y: Pair) -> Pair:
    """A cell of a block, ends included."""
    if x[1] < x[0] or y[1] < y[0]:
        raise PlacementFailed
    return int(random.integers(x[0], x[1] + 1)), int(random.integers(y[0], y[1] + 1))


def place(
    occupied: BoolArray, size: tuple[float, float], rule: Rule, random: np.random.Generator
) -> tuple[Pair, Corner]:
    """Puts an object on free cells and marks them.

    Args:
        occupied: `[x, y]`, cells that are taken.
        size: edges of the object.
        rule: draws cells to try.
        random: drawn from.

    Returns:
        The lower left cell, and the object's lower left corner: it lies anywhere on its cells.

    Raises:
        PlacementFailed: ten draws found no free place.
    """
    n = cells_of(size[0]), cells_of(size[1])
    for _ in range(TRIES):
        x, y = rule(random, n)
        block = occupied[x : x + n[0], y : y + n[1]]
        if not block.any():
            block[:] = True
            jitter = random.uniform(size=2)
            corner = x * CELL + jitter[0] * (n[0] * CELL - size[0]), y * CELL + jitter[1] * (n[1] * CELL - size[1])
            return (x, y), (float(corner[0]), float(corner[1]))
    raise PlacementFailed
