from __future__ import annotations

import numpy as np
import pytest

from envs._vizdoom_buttons import button_choices
from srlhpc.environment import Discrete, MultiDiscrete
from srlhpc.errors import UserError

CORRIDOR = ["MOVE_LEFT", "MOVE_RIGHT", "ATTACK", "MOVE_FORWARD", "MOVE_BACKWARD", "TURN_LEFT", "TURN_RIGHT"]


def test_single_is_nothing_and_each_button_alone() -> None:
    choices = button_choices(["MOVE_LEFT", "ATTACK"], "single", {})
    assert choices.space == Discrete(3)
    assert choices.pressed(np.array([0, 2, 1])) == [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]


def test_combinations_are_all_but_those_of_buttons_that_exclude_each_other() -> None:
    choices = button_choices(CORRIDOR, "combinations", {})
    assert choices.space == Discrete(3 * 2 * 3 * 3)
    rows = choices.pressed(np.arange(54))
    assert len({tuple(row) for row in rows}) == 54
    assert rows[0] == [0.0] * 7
    for left, right in (("MOVE_LEFT", "MOVE_RIGHT"), ("MOVE_FORWARD", "MOVE_BACKWARD"), ("TURN_LEFT", "TURN_RIGHT")):
        assert not any(row[CORRIDOR.index(left)] and row[CORRIDOR.index(right)] for row in rows)
    assert rows[-1] == [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]


def test_groups_are_a_choice_for_each_group() -> None:
    choices = button_choices(CORRIDOR, "groups", {})
    assert choices.space == MultiDiscrete((3, 2, 3, 3))
    actions = np.array([[0, 0, 0, 0], [1, 1, 2, 0], [2, 0, 0, 1]])
    pressed = [[name for name, value in zip(CORRIDOR, row, strict=True) if value] for row in choices.pressed(actions)]
    assert pressed == [[], ["MOVE_LEFT", "ATTACK", "MOVE_BACKWARD"], ["MOVE_RIGHT", "TURN_LEFT"]]


def test_groups_of_one_group_are_one_choice() -> None:
    assert button_choices(["TURN_LEFT", "TURN_RIGHT"], "groups", {}).space == Discrete(3)


def test_values_of_a_delta_button_are_options_of_its_group() -> None:
    buttons, deltas = ["ATTACK", "TURN_LEFT", "TURN_LEFT_RIGHT_DELTA"], {"TURN_LEFT_RIGHT_DELTA": (-5.0, 2.5)}
    single = button_choices(buttons, "single", deltas)
    assert single.space == Discrete(5)
    assert single.pressed(np.array([3, 4])) == [[0.0, 0.0, -5.0], [0.0, 0.0, 2.5]]
    groups = button_choices(buttons, "groups", deltas)
    assert groups.space == MultiDiscrete((2, 4))
    assert groups.pressed(np.array([[1, 2], [0, 1]])) == [[1.0, 0.0, -5.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("deltas", "message"),
    [
        ({}, r"TURN_LEFT_RIGHT_DELTA takes any number.*deltas: {TURN_LEFT_RIGHT_DELTA: \[-5, 5\]}.*available_buttons"),
        ({"TURN_LEFT_RIGHT_DELTA": ()}, r"is \[\]; write different values"),
        ({"TURN_LEFT_RIGHT_DELTA": (1.0, 0.0)}, "other than 0"),
        ({"TURN_LEFT_RIGHT_DELTA": (1.0, 1.0)}, "different values"),
        ({"TURN_LEFT_RIGT_DELTA": (1.0,)}, "did you mean 'TURN_LEFT_RIGHT_DELTA'"),
        ({"TURN_LEFT_RIGHT_DELTA": (1.0,), "ATTACK": (2.0,)}, "ATTACK is no delta button"),
    ],
)
def test_delta_buttons_need_values_and_others_have_none(deltas: dict[str, tuple[float, ...]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        button_choices(["ATTACK", "TURN_LEFT_RIGHT_DELTA"], "single", deltas)


def test_too_many_combinations_are_refused() -> None:
    weapons = [f"SELECT_WEAPON{number}" for number in range(1, 7)]
    buttons = ["ATTACK", "SPEED", "STRAFE", *CORRIDOR[:2], *CORRIDOR[3:], *weapons]
    with pytest.raises(UserError, match=r"1,512 of these 15 buttons; possible are 512: write groups"):
        button_choices(buttons, "combinations", {})
    assert button_choices(buttons, "groups", {}).space == MultiDiscrete((2, 2, 2, 3, 3, 3, 7))
