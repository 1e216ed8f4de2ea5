"""What worlds look like, over many of them."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import mujoco
import numpy as np
import pytest

from envs.hide_and_seek.layout import (
    ALONG_X,
    ALONG_Y,
    CUBE,
    Layout,
    _try_layout,
    draw_box_sizes,
    draw_layout,
    draw_team_sizes,
)
from envs.hide_and_seek.model import structure_of
from envs.hide_and_seek.placement import PlacementFailed
from envs.hide_and_seek.pool import WorldPool
from envs.hide_and_seek.random_walls import _Joined, _proposal, _split, random_walls
from envs.hide_and_seek.settings import RandomWalls, Settings
from envs.hide_and_seek.walls import Wall, outer_walls

WORLDS = 500


def settings_of(kind: str, **changes: Any) -> Settings:
    teams = (2, 2) if kind == "quadrant" else (3, 3)
    return Settings.model_validate(
        {"factory": "hide_and_seek", "hiders": teams, "seekers": teams, "scenario": {"kind": kind}, **changes}
    )


@cache
def worlds(kind: str) -> list[Layout]:
    settings, random = settings_of(kind), np.random.default_rng(1)
    hiders = settings.hiders[1]
    return [draw_layout(settings, hiders, hiders, random) for _ in range(WORLDS)]


@pytest.mark.parametrize(("kind", "slots", "friction"), [("quadrant", 8, 0.01), ("random_walls", 10, 1.0)])
def test_nothing_penetrates_at_the_start_but_arms_a_little(kind: str, slots: int, friction: float) -> None:
    pool = WorldPool(64)
    for layout in worlds(kind):
        world = pool.take(structure_of(layout, slots, friction))
        world.place(layout)
        mujoco.mj_forward(world.model, world.data)
        contacts = world.data.contact
        names = [[world.model.geom(int(geom)).name for geom in pair] for pair in contacts.geom]
        arms = np.array([any(name.startswith("agent") and name[-1] in "12" for name in pair) for pair in names])
        assert (contacts.dist > -0.065).all()
        assert (contacts.dist[~arms] > -0.001).all() if len(arms) else True
        pool.give_back(world)


def cell_of(corner: np.ndarray) -> np.ndarray:
    return np.floor(corner / 0.2 + 1e-9).astype(int)


def test_teams_start_together_in_random_walls() -> None:
    offsets = []
    for layout in worlds("random_walls"):
        cells = cell_of(layout.agents)
        offsets += [cells[1:3] - cells[0], cells[4:] - cells[3]]
    assert np.min(offsets) == -3
    assert np.max(offsets) == 2


def test_half_of_the_random_worlds_have_outer_walls() -> None:
    assert 0.43 < np.mean([any(wall.outer for wall in layout.walls) for layout in worlds("random_walls")]) < 0.57


def test_quadrants_have_outer_walls_and_cubes_inside_and_seekers_outside() -> None:
    for layout in worlds("quadrant"):
        assert sum(wall.outer for wall in layout.walls) == 4
        assert len(layout.boxes) == 2
        inside = lambda corner, size: (corner[:, 0] >= 3.0) & (corner[:, 1] + size <= 3.2)  # noqa: E731
        assert inside(layout.boxes, 0.5).all()
        assert not inside(layout.agents[2:], 0.3).any()
        assert len(layout.ramps) == 1


def test_hiders_start_anywhere_or_in_the_quadrant() -> None:
    anywhere = np.concatenate([layout.agents[:2] for layout in worlds("quadrant")])
    assert 0.15 < np.mean((anywhere[:, 0] > 3.0) & (anywhere[:, 1] < 3.0)) < 0.35
    settings, random = settings_of("quadrant", scenario={"kind": "quadrant", "hiders_anywhere": False}), None
    random = np.random.default_rng(0)
    inside = np.concatenate([draw_layout(settings, 2, 2, random).agents[:2] for _ in range(50)])
    assert ((inside[:, 0] >= 3.0) & (inside[:, 1] < 3.0)).all()


def test_half_of_the_quadrants_have_one_door() -> None:
    whole = [sum(wall.length in (14, 15) and not wall.outer for wall in layout.walls) for layout in worlds("quadrant")]
    assert set(whole) == {0, 1}
    assert 0.43 < np.mean(whole) < 0.57


def test_random_walls_have_three_inner_walls_at_most_each_with_a_door_of_two_cells() -> None:
    for layout in worlds("random_walls"):
        inner = [wall for wall in layout.walls if not wall.outer]
        assert len(inner) <= 6
        assert len({(wall.vertical, wall.line) for wall in inner}) <= 3
        for wall in inner:
            gaps = [
                other.start - wall.end
                for other in inner
                if (other.vertical, other.line) == (wall.vertical, wall.line) and other.start > wall.end
            ]
            assert not gaps or min(gaps) >= 3


def test_rooms_are_uniform() -> None:
    random = np.random.default_rng(0)
    numbers = Counter(len(_split(30, int(random.integers(4)), random)) for _ in range(400))
    assert set(numbers) == {0, 1, 2, 3}
    assert min(numbers.values()) > 70


def test_a_new_wall_keeps_away_from_joints_on_its_side_only() -> None:
    random = np.random.default_rng(0)
    start = _Joined(Wall(False, 0, 0, 29), above=[15])
    above = {(_proposal(start, Wall(False, 29, 0, 29), random) or Wall(True, -1, 0, 0)).line for _ in range(2000)}
    assert above == {-1, 7, 8, 22}
    start = _Joined(Wall(False, 29, 0, 29), above=[15])
    below = {(_proposal(start, Wall(False, 0, 0, 29), random) or Wall(True, -1, 0, 0)).line for _ in range(2000)}
    assert below == {-1, *range(7, 23)}


def test_a_new_wall_ends_on_the_other_wall() -> None:
    random = np.random.default_rng(0)
    start = _Joined(Wall(True, 0, 0, 29))
    ends = {(_proposal(start, Wall(True, 12, 10, 14), random) or Wall(True, -1, 0, 0)) for _ in range(2000)}
    assert ends - {Wall(True, -1, 0, 0)} == {Wall(False, line, 0, 12) for line in range(10, 15)}


def test_joints_are_recorded_on_the_side_of_the_meeting_wall() -> None:
    wall = _Joined(Wall(True, 10, 0, 29))
    wall.meet(Wall(False, 12, 10, 20))
    wall.meet(Wall(False, 14, 0, 10))
    wall.meet(Wall(False, 16, 0, 9))
    wall.meet(Wall(True, 10, 0, 5))
    assert (sorted(wall.above), sorted(wall.below)) == ([0, 12, 29], [0, 14, 29])


def test_rooms_that_do_not_fit_fail() -> None:
    with pytest.raises(PlacementFailed):
        random_walls(12, (4, 4), 1.0, np.random.default_rng(0))


def test_inner_walls_never_cross() -> None:
    random = np.random.default_rng(2)
    for _ in range(200):
        walls = [joined.wall for joined in _split(30, 3, random)] + outer_walls(30)
        assert not any(wall.crosses(other) for wall in walls for other in walls)


def test_boxes_are_drawn_by_the_rules_and_ordered_by_shape() -> None:
    random, scenario = np.random.default_rng(0), RandomWalls()
    numbers, elongated, along_x = Counter(), Counter(), Counter()
    for _ in range(7000):
        sizes = draw_box_sizes(scenario, random)
        shapes = [sizes.count(shape) for shape in (ALONG_X, ALONG_Y, CUBE)]
        assert sizes == [ALONG_X] * shapes[0] + [ALONG_Y] * shapes[1] + [CUBE] * shapes[2]
        assert 3 <= shapes[0] + shapes[1] <= len(sizes)
        numbers[len(sizes)] += 1
        if len(sizes) == 9:
            elongated[shapes[0] + shapes[1]] += 1
        if shapes[0] + shapes[1] == 3:
            along_x[shapes[0]] += 1
    for counted, values in ((numbers, range(3, 10)), (elongated, range(3, 10)), (along_x, range(4))):
        assert set(counted) == set(values)
        expected = counted.total() / len(values)
        assert all(abs(count - expected) < 5 * np.sqrt(expected) for count in counted.values())


def test_team_sizes_are_uniform() -> None:
    random, settings = np.random.default_rng(0), Settings(factory="hide_and_seek")
    drawn = Counter(draw_team_sizes(settings, random) for _ in range(1800))
    assert set(drawn) == {(hiders, seekers) for hiders in (1, 2, 3) for seekers in (1, 2, 3)}
    assert min(drawn.values()) > 150


def test_a_world_that_does_not_fit_is_drawn_anew_as_a_whole() -> None:
    """The first world that fits is taken, with the random numbers going on."""
    settings = settings_of("random_walls", map_scale=0.6)
    failed = 0
    for seed in range(30):
        layout, random = draw_layout(settings, 3, 3, np.random.default_rng(seed)), np.random.default_rng(seed)
        while True:
            try:
                again = _try_layout(settings, 3, 3, random)
                break
            except PlacementFailed:
                failed += 1
        np.testing.assert_array_equal(layout.agents, again.agents)
        np.testing.assert_array_equal(layout.ramps, again.ramps)
    assert failed


@pytest.mark.parametrize(("scale", "cells", "radius"), [(1.5, 45, 4), (2.0, 60, 5)])
def test_larger_maps_have_more_cells_and_wider_teams(scale: float, cells: int, radius: int) -> None:
    settings, random = settings_of("random_walls", map_scale=scale), np.random.default_rng(0)
    assert settings.cells == cells
    offsets, corners = [], []
    for _ in range(200):
        layout = draw_layout(settings, 3, 3, random)
        places = cell_of(layout.agents)
        offsets += [places[1:3] - places[0], places[4:] - places[3]]
        corners.append(layout.boxes)
    assert (np.min(offsets), np.max(offsets)) == (-radius, radius - 1)
    assert np.concatenate(corners).max() > 6.0 * scale - 2.0


def test_equal_seeds_draw_equal_worlds() -> None:
    settings = settings_of("random_walls")
    one, other = (draw_layout(settings, 3, 3, np.random.default_rng(5)) for _ in range(2))
    assert one.walls == other.walls
    for name in ("agents", "boxes", "box_sizes", "ramps"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
