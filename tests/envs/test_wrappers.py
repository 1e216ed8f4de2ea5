from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from envs.gymnasium import Settings, build
from envs.wrappers import SelectObservation
from srlhpc.environment import ArraySpec, Environment
from srlhpc.errors import UserError
from tests.environment_conformance import EnvironmentConformance

SELECT = "envs.wrappers.SelectObservation"


class TestCartPolePositions(EnvironmentConformance):
    settings = {"factory": "gymnasium", "id": "CartPole-v1", "wrappers": [{SELECT: {"indices": [0, 2]}}]}


def make(indices: list[Any], name: str = "CartPole-v1", *before: str) -> Environment:
    settings = {"factory": "gymnasium", "id": name, "wrappers": [*before, {SELECT: {"indices": indices}}]}
    return build(Settings.model_validate(settings), 2, 0)


def test_selected_numbers_are_shown_in_the_given_order() -> None:
    plain = build(Settings(factory="gymnasium", id="CartPole-v1", kwargs={"vectorization_mode": "sync"}), 2, 0)
    chosen = make([2, 0])
    assert chosen.spaces.kinds[0].observations == {"obs": ArraySpec((2,), "float32")}
    all_numbers, some = plain.reset(3), chosen.reset(3)
    for _ in range(20):
        seen = all_numbers.kinds["agent"].observations["obs"]
        np.testing.assert_array_equal(some.kinds["agent"].observations["obs"], seen[..., [2, 0]])
        push = {"agent": np.ones((2, 1), np.int64)}
        all_numbers, some = plain.step(push), chosen.step(push)


def test_bounds_of_the_selected_numbers_are_kept() -> None:
    whole = gymnasium.make("CartPole-v1").observation_space
    part = SelectObservation(gymnasium.make("CartPole-v1"), [2]).observation_space
    assert isinstance(whole, gymnasium.spaces.Box)
    assert isinstance(part, gymnasium.spaces.Box)
    assert (part.low.tolist(), part.high.tolist()) == ([whole.low[2]], [whole.high[2]])


@pytest.mark.parametrize("indices", [[], [4], [0, -1], ["angle"]])
def test_numbers_that_are_not_there_are_refused(indices: list[Any]) -> None:
    with pytest.raises(UserError, match=r"environment\.wrappers\.0: .*SelectObservation .*write numbers from 0 to 3"):
        make(indices)


def test_observation_that_is_no_row_is_refused() -> None:
    with pytest.raises(UserError, match=r"it selects from a row of numbers, and Discrete\(48\) is none; flatten it"):
        make([0], "CliffWalking-v1")
    flat = make([36, 0], "CliffWalking-v1", "gymnasium.wrappers.FlattenObservation")
    assert flat.reset(0).kinds["agent"].observations["obs"].tolist() == [[[1, 0]]] * 2
