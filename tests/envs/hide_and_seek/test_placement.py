from __future__ import annotations

import numpy as np
import pytest

from envs.hide_and_seek.layout import _place_team
from envs.hide_and_seek.placement import PlacementFailed, cells_of, in_quadrant, near, outside_quadrant, place, uniform


def drawn(rule: object, n: tuple[int, int], times: int = 4000) -> set[tuple[int, int]]:
    random = np.random.default_rng(0)
    return {rule(random, n) for _ in range(times)}  # type: ignore[operator]


def block(x: tuple[int, int], y: tuple[int, int]) -> set[tuple[int, int]]:
    return {(i, j) for i in range(x[0], x[1] + 1) for j in range(y[0], y[1] + 1)}


@pytest.mark.parametrize(("size", "cells"), [(0.3, 2), (0.5, 3), (1.65, 9), (0.15, 1)])
def test_cells_of_agents_cubes_and_elongated_boxes(size: float, cells: int) -> None:
    assert cells_of(size) == cells


def test_uniform_rule_draws_its_range_to_the_ends() -> None:
    assert drawn(uniform(12), (2, 3)) == block((1, 8), (1, 7))


def test_quadrant_rule_draws_its_range_to_the_ends() -> None:
    assert drawn(in_quadrant(20, 10), (3, 3)) == block((10, 15), (1, 5))


def test_outside_rule_draws_the_other_three_quadrants() -> None:
    left, right, lower, upper = (1, 6), (10, 16), (1, 6), (10, 16)
    assert drawn(outside_quadrant(20, 10), (2, 2)) == block(left, lower) | block(left, upper) | block(right, upper)


def test_near_rule_ignores_the_size_and_stays_on_the_grid() -> None:
    assert drawn(near(30, (10, 12), 3), (9, 9)) == block((7, 12), (9, 14))
    assert drawn(near(30, (28, 1), 3), (2, 2)) == block((25, 28), (1, 3))


def test_an_object_lies_anywhere_on_its_cells() -> None:
    random, corners = np.random.default_rng(0), []
    for _ in range(500):
        cell, corner = place(np.zeros((30, 30), np.bool_), (0.3, 1.65), lambda *_: (4, 5), random)
        assert cell == (4, 5)
        corners.append(corner)
    np.testing.assert_allclose(np.min(corners, axis=0), (0.8, 1.0), atol=0.005)
    np.testing.assert_allclose(np.max(corners, axis=0), (0.9, 1.15), atol=0.005)


def test_taken_cells_are_avoided_and_new_ones_marked() -> None:
    occupied = np.zeros((30, 30), np.bool_)
    occupied[1:5, 1] = True
    tries = iter([(1, 1), (3, 1), (4, 2)])
    cell, _ = place(occupied, (0.3, 0.3), lambda *_: next(tries), np.random.default_rng(0))
    assert cell == (4, 2)
    assert occupied[4:6, 2:4].all()


def test_ten_failures_fail() -> None:
    tries = []
    with pytest.raises(PlacementFailed):
        place(np.ones((30, 30), np.bool_), (0.3, 0.3), lambda *_: tries.append(0) or (1, 1), np.random.default_rng(0))
    assert len(tries) == 10


def test_an_object_too_large_for_its_rule_fails() -> None:
    with pytest.raises(PlacementFailed):
        place(np.zeros((12, 12), np.bool_), (2.2, 2.2), uniform(12), np.random.default_rng(0))


def test_a_team_whose_first_agent_finds_no_place_fails() -> None:
    with pytest.raises(PlacementFailed):
        _place_team(np.ones((30, 30), np.bool_), 3, uniform(30), 30, 3, np.random.default_rng(0))
