"""Drawing a world: what there is and where it stands. Nothing here knows the simulator."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs.hide_and_seek.placement import (
    Corner,
    PlacementFailed,
    Rule,
    in_quadrant,
    near,
    outside_quadrant,
    place,
    uniform,
)
from envs.hide_and_seek.quadrant import quadrant_size, quadrant_walls
from envs.hide_and_seek.random_walls import random_walls
from envs.hide_and_seek.settings import Quadrant, RandomWalls, Settings
from envs.hide_and_seek.walls import CELL, Wall, mark
from srlhpc.environment import BoolArray

AGENT_SIZE = (0.3, 0.3, 0.3)
"""Edges of an agent's place; the agent is a ball of this diameter."""
CUBE = (0.5, 0.5, 0.5)
ALONG_X = (1.65, 0.15, 0.5)
"""Edges of an elongated box along x."""
ALONG_Y = (0.15, 1.65, 0.5)
RAMP = (0.5, 0.5, 0.5)
FOOD_SIZE = 0.1
"""Edge of a food site."""


@dataclass(frozen=True)
class Layout:
    """A world before its first step. Positions are lower left corners on the floor."""

    hiders: int
    seekers: int
    walls: tuple[Wall, ...]
    agents: NDArray[np.float64]
    """`[hiders + seekers, 2]`, hiders first."""
    boxes: NDArray[np.float64]
    """`[N, 2]`: elongated boxes along x, those along y, then cubes."""
    box_sizes: NDArray[np.float64]
    """`[N, 3]`, full edges."""
    ramps: NDArray[np.float64]
    """`[R, 2]`."""
    food: NDArray[np.float64]
    """`[F, 3]`, centres of the sites."""


def draw_team_sizes(settings: Settings, random: np.random.Generator) -> tuple[int, int]:
    """Hiders and seekers, each uniform within its range."""
    hiders, seekers = (int(random.integers(low, high + 1)) for low, high in (settings.hiders, settings.seekers))
    return hiders, seekers


def draw_layout(settings: Settings, hiders: int, seekers: int, random: np.random.Generator) -> Layout:
    """Draws whole worlds until everything in one has found its place."""
    while True:
        try:
            return _try_layout(settings, hiders, seekers, random)
        except PlacementFailed:
            continue


def _try_layout(settings: Settings, hiders: int, seekers: int, random: np.random.Generator) -> Layout:
    scenario, cells = settings.scenario, settings.cells
    occupied = np.zeros((cells, cells), np.bool_)
    anywhere = uniform(cells)
    if isinstance(scenario, Quadrant):
        walls = quadrant_walls(cells, scenario.door_dropout, random)
    else:
        walls = random_walls(cells, scenario.rooms, scenario.outer_walls, random)
    mark(occupied, walls)
    agents = _place_agents(settings, occupied, hiders, seekers, random)
    sizes = draw_box_sizes(scenario, random)
    box_rule = in_quadrant(cells, quadrant_size(cells)) if isinstance(scenario, Quadrant) else anywhere
    boxes = [place(occupied, (x, y), box_rule, random)[1] for x, y, _ in sizes]
    ramps = [place(occupied, RAMP[:2], anywhere, random)[1] for _ in range(scenario.ramps)]
    food_rule = in_quadrant(cells, quadrant_size(cells)) if isinstance(scenario, Quadrant) else anywhere
    sites = settings.food.sites if settings.food else 0
    food = [place(occupied, (FOOD_SIZE, FOOD_SIZE), food_rule, random)[1] for _ in range(sites)]
    return Layout(
        hiders=hiders,
        seekers=seekers,
        walls=tuple(walls),
        agents=_array(agents, 2),
        boxes=_array(boxes, 2),
        box_sizes=_array(sizes, 3),
        ramps=_array(ramps, 2),
        food=_array([(x + FOOD_SIZE / 2, y + FOOD_SIZE / 2, FOOD_SIZE / 2) for x, y in food], 3),
    )


def _array(rows: object, columns: int) -> NDArray[np.float64]:
    return np.array(rows, np.float64).reshape(-1, columns)


def _place_agents(
    settings: Settings, occupied: BoolArray, hiders: int, seekers: int, random: np.random.Generator
) -> list[Corner]:
    scenario, cells = settings.scenario, settings.cells
    anywhere = uniform(cells)
    if isinstance(scenario, Quadrant):
        quadrant = quadrant_size(cells)
        hiding = anywhere if scenario.hiders_anywhere else in_quadrant(cells, quadrant)
        rules = [hiding] * hiders + [outside_quadrant(cells, quadrant)] * seekers
        return [place(occupied, AGENT_SIZE[:2], rule, random)[1] for rule in rules]
    radius = math.ceil(scenario.team_radius * settings.map_scale / CELL)
    return [
        *_place_team(occupied, hiders, anywhere, cells, radius, random),
        *_place_team(occupied, seekers, anywhere, cells, radius, random),
    ]


def _place_team(
    occupied: BoolArray, number: int, first: Rule, cells: int, radius: int, random: np.random.Generator
) -> list[Corner]:
    """One agent by the rule, the others near it."""
    anchor, corner = place(occupied, AGENT_SIZE[:2], first, random)
    beside = near(cells, anchor, radius)
    return [corner, *(place(occupied, AGENT_SIZE[:2], beside, random)[1] for _ in range(number - 1))]


def draw_box_sizes(scenario: Quadrant | RandomWalls, random: np.random.Generator) -> list[tuple[float, float, float]]:
    """Edges of all boxes: those along x, those along y, then cubes."""
    number = int(random.integers(scenario.boxes[0], scenario.boxes[1] + 1))
    low, high = scenario.elongated
    if not high:
        return [CUBE] * number
    elongated = int(random.integers(low, min(high, number) + 1))
    along_x = int(random.integers(elongated + 1))
    return [ALONG_X] * along_x + [ALONG_Y] * (elongated - along_x) + [CUBE] * (number - elongated)
