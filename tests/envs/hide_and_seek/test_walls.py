from __future__ import annotations

import numpy as np
import pytest

from envs.hide_and_seek.walls import Wall, mark, outer_walls, with_door


class Scripted:
    """Draws the given numbers in turn."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = list(numbers)

    def integers(self, low: int, high: int | None = None) -> int:
        number = self._numbers.pop(0)
        assert (0, low)[high is not None] <= number < (high if high is not None else low)
        return number


def gap_along(first: Wall, second: Wall) -> float:
    """Clear space between two vertical walls, or a horizontal and a vertical one, from below to above."""
    return second.rectangle()[1] - first.rectangle()[3]


def test_a_wall_stands_in_the_middle_of_its_cells_and_is_shortened_at_its_ends() -> None:
    assert Wall(True, 15, 0, 15).rectangle() == pytest.approx((3.05, 0.15, 3.15, 3.05))
    assert Wall(False, 15, 15, 29).rectangle() == pytest.approx((3.15, 3.05, 5.85, 3.15))


def test_outer_walls_leave_the_interior_of_the_rules() -> None:
    left, right, lower, upper = (
        next(wall for wall in outer_walls(30) if wall.vertical == vertical and wall.line == line).rectangle()
        for vertical, line in ((True, 0), (True, 29), (False, 0), (False, 29))
    )
    assert (left[2], right[0], lower[3], upper[1]) == pytest.approx((0.15, 5.85, 0.15, 5.85))


def test_heights_of_inner_and_outer_walls() -> None:
    assert Wall(True, 3, 0, 5).height == 0.5
    assert {wall.height for wall in outer_walls(30)} == {4.0}


def test_walls_that_touch_do_not_cross() -> None:
    across = Wall(True, 5, 0, 10)
    assert across.crosses(Wall(False, 3, 0, 10))
    assert not across.crosses(Wall(False, 3, 5, 10))
    assert not across.crosses(Wall(False, 10, 0, 10))
    assert not across.crosses(Wall(True, 5, 3, 7))


def test_a_door_is_a_gap_of_two_cells() -> None:
    pieces = with_door(Wall(True, 9, 0, 15), (), Scripted(0, 6))  # type: ignore[arg-type]
    assert pieces == [Wall(True, 9, 0, 5), Wall(True, 9, 8, 15)]
    assert gap_along(*pieces) == pytest.approx(0.7)


def test_a_door_beside_a_vanished_piece_is_narrower() -> None:
    (piece,) = with_door(Wall(True, 9, 0, 15), (), Scripted(0, 1))  # type: ignore[arg-type]
    assert piece == Wall(True, 9, 3, 15)
    assert gap_along(Wall(False, 0, 0, 29), piece) == pytest.approx(0.6)


def test_a_door_may_take_the_whole_wall() -> None:
    assert with_door(Wall(True, 9, 0, 3), (), Scripted(0, 1)) == []  # type: ignore[arg-type]
    assert gap_along(Wall(False, 0, 0, 29), Wall(False, 3, 0, 29)) == pytest.approx(0.5)


def test_doors_are_in_stretches_between_joints_that_are_long_enough() -> None:
    wall, joints = Wall(False, 9, 2, 14), (4, 10, 12)
    random = np.random.default_rng(0)
    doors = set()
    for _ in range(300):
        pieces = with_door(wall, joints, random)
        kept = {cell for piece in pieces for cell in range(piece.start, piece.end + 1)}
        doors.add(tuple(sorted({*range(2, 15)} - kept)))
    assert doors == {(5, 6), (6, 7), (7, 8), (8, 9)}


def test_a_wall_without_a_long_stretch_gets_no_door() -> None:
    wall = Wall(True, 9, 0, 4)
    assert with_door(wall, (2,), np.random.default_rng(0)) == [wall]


def test_cells_of_walls_are_marked_and_doors_stay_free() -> None:
    occupied = np.zeros((6, 6), np.bool_)
    mark(occupied, [Wall(True, 2, 0, 1), Wall(True, 2, 4, 5), Wall(False, 0, 3, 5)])
    assert np.argwhere(occupied).tolist() == [[2, 0], [2, 1], [2, 4], [2, 5], [3, 0], [4, 0], [5, 0]]
