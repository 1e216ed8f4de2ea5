"""What a Gymnasium environment shows and returns is checked before it is written."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from envs._returned_values import SimulatorError
from srlhpc.errors import UserError
from tests.envs.wrong_environments import play, told, told_vector

IMAGE = spaces.Box(0, 255, (20, 30, 3), np.uint8)


WRONG_OBSERVATIONS = [
    (None, np.zeros(1, np.float32), r"\(1,\) float32, expected \(3,\) float32 of its space Box\(-1.0, 1.0, \(3,\)"),
    (None, np.float32(0.5), r"another shape: \(\) float32, expected \(3,\)"),
    (None, np.zeros((1, 3), np.float32), r"another shape: \(1, 3\) float32, expected \(3,\)"),
    (None, [0.0, 0.0], r"another shape: \(2,\) float64"),
    (None, [[0.0], [0.0, 1.0], 3], "is no array: list"),
    (None, np.zeros(3, np.complex64), "another kind of number: .* complex64"),
    (None, np.array(["0", "0", "0"]), "another kind of number: .* <U1"),
    (None, None, "another shape: "),
    (IMAGE, np.full((20, 30, 1), 7, np.uint8), r"another shape: \(20, 30, 1\) uint8, expected \(20, 30, 3\) uint8"),
    (IMAGE, np.full((20, 30), 7, np.uint8), r"another shape: \(20, 30\) uint8"),
    (IMAGE, np.full((30, 20, 3), 7, np.uint8), r"another shape: \(30, 20, 3\) uint8"),
    (IMAGE, np.full((20, 30, 3), 300), r"has 300 at \[0, 0, 0\], outside of its space"),
    (IMAGE, np.full((20, 30, 3), -1), "has -1 at"),
    (IMAGE, np.full((20, 30, 3), 0.5), "another kind of number: .* float64"),
    (spaces.Box(0, 255, (4,), np.uint8), np.array([0, 1, 2, 256]), r"has 256 at \[3\]"),
    (spaces.Box(0, 9, (2, 2), np.int32), np.full((2, 2), 10), "has 10 at"),
    (spaces.Discrete(4, start=2), 1, "is 1, which is not in its space"),
    (spaces.Discrete(4), 4, "is 4, which is not in its space"),
    (spaces.Discrete(4), 2.0, "is no integer: float 2.0"),
    (spaces.Discrete(4), np.array([1, 2]), r"is no integer: shape \(2,\) int64"),
    (spaces.MultiDiscrete([2, 3]), np.array([0, 3]), r"has 3 at \[1\]"),
    (spaces.MultiDiscrete([2, 3], start=[1, 1]), np.array([0, 1]), r"has 0 at \[0\]"),
    (spaces.MultiDiscrete([2, 3]), np.array([0]), r"another shape: \(1,\) int64"),
    (spaces.MultiBinary(3), np.array([0, 1, 2]), r"has 2 at \[2\]"),
    (spaces.MultiBinary(3), np.array([1]), r"another shape"),
    (spaces.Dict(a=spaces.Box(-1, 1, (2,))), {"b": 1}, "'a' of its space is missing: where it should be is only 'b'"),
    (spaces.Dict(a=spaces.Box(-1, 1, (2,))), np.zeros(2), "'a' of its space is missing: where it should be is ndarray"),
    (spaces.Dict(a=spaces.Box(-1, 1, (2,))), {"a": np.zeros(1)}, r"observation 'a' is of another shape: \(1,\)"),
    (spaces.Dict(a=spaces.Dict(b=spaces.Discrete(2))), {"a": {"b": 2}}, "observation 'a.b' is 2, which is not in"),
    (spaces.Dict(a=spaces.Dict(b=spaces.Discrete(2))), {"a": {}}, "'a.b' of its space is missing: .* only nothing"),
    (None, np.ma.array([0.0, 0.0, 9.0], mask=[0, 0, 1]), "the observation is a masked array"),
    (None, [0.0, 0.0, np.ma.masked], "the observation is a masked array"),
    (spaces.Discrete(4), np.ma.array(1, mask=True), "the observation is a masked array"),
    (spaces.MultiDiscrete([2, 3]), np.ma.array([1, 2], mask=[1, 0]), "the observation is a masked array"),
    (None, np.array([0.0, -1e300, np.nan]), r"has -1e\+300 at \[1\], too large for float32, which ends at 3.4e"),
    (spaces.Dict(a=spaces.Box(-np.inf, np.inf, (), np.float64)), {"a": 1e39}, "observation 'a' is 1e.39, too large"),
    (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]), (1,), "'1' of its space is missing: .* tuple"),
]  # fmt: skip


@pytest.mark.parametrize(("space", "shown", "complaint"), WRONG_OBSERVATIONS)
def test_wrong_first_observation_is_refused_before_the_start(space: Any, shown: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=f"environment '.*Told-v0', reset: .*{complaint}"):
        told(observation_space=space, shows=lambda _: shown)


@pytest.mark.parametrize(("space", "shown", "complaint"), WRONG_OBSERVATIONS)
def test_wrong_later_observation_is_refused_with_its_environment(space: Any, shown: Any, complaint: str) -> None:
    right = (spaces.Box(-1, 1, (3,)) if space is None else space).sample()
    environment = told(observation_space=space, shows=lambda time: shown if time == 2 else right)
    play(environment, 1)
    with pytest.raises(SimulatorError, match=f"environment 0: .*{complaint}"):
        play(environment, 2)


@pytest.mark.parametrize(
    ("space", "shown"),
    [
        (None, np.zeros(3)),
        (None, [0, 1, 0]),
        (None, np.array([True, False, True])),
        (None, np.zeros(3, np.float16)),
        (IMAGE, np.full((20, 30, 3), 255)),
        (spaces.Box(0, 9, (2,), np.int64), np.array([0, 9], np.int16)),
        (spaces.Box(-(2**63), 2**63 - 1, (2,), np.int64), np.array([2**62, -(2**63)])),
        (spaces.Discrete(4), np.array(3)),
        (spaces.MultiBinary(2), [True, False]),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 2], np.int8)),
    ],
)
def test_other_types_that_lose_nothing_are_taken(space: Any, shown: Any) -> None:
    play(told(observation_space=space, shows=lambda _: shown), 3)


def test_floats_outside_of_their_bounds_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        environment = told(shows=lambda _: np.array([0, 0, 1.5], np.float32))
        play(environment, 3)
    assert environment.step({"agent": np.zeros((2, 1), int)}).kinds["agent"].observations["obs"][0, 0, 2] == 1.5
    text = "the observation has 1.5 at [2], outside of its space Box(-1.0, 1.0, (3,), float32); it is taken as it is"
    assert [text in record.getMessage() for record in caplog.records] == [True]


def test_values_are_looked_at_now_and_then_for_ever() -> None:
    space = spaces.Box(0, 9, (2,), np.int32)
    environment = told(1, observation_space=space, shows=lambda time: np.full(2, 10 if time > 1000 else 9))
    with pytest.raises(SimulatorError, match="has 10 at"):
        play(environment, 1100)


@pytest.mark.parametrize("space", [spaces.Dict(), spaces.Box(0, 1, (0,)), spaces.Dict(a=spaces.Box(0, 1, (3, 0)))])
def test_observation_space_that_holds_nothing_is_refused(space: Any) -> None:
    with pytest.raises(UserError, match="no numbers to learn from"):
        told(observation_space=space)


@pytest.mark.parametrize(
    "reward", [np.array([2.0]), np.array([[2.0]], np.float32), np.int64(2), np.array(2.0), 2, True]
)
def test_reward_of_one_number_is_taken_whatever_its_shape(reward: Any) -> None:
    environment = told(2, ends=lambda _: (reward, np.array([False]), 0))
    environment.reset(0)
    assert (
        environment.step({"agent": np.zeros((2, 1), int)}).kinds["agent"].rewards.tolist()
        == [[np.asarray(reward).item()]] * 2
    )


@pytest.mark.parametrize(
    ("ends", "complaint"),
    [
        ((None, False, False), "the reward is None"),
        (("1", False, False), "the reward is '1'"),
        ((np.zeros(2), False, False), r"the reward is of shape \(2,\) float64, expected one number"),
        (({"a": 1.0}, False, False), "the reward is {'a': 1.0}"),
        ((1.0, None, False), "terminated is None"),
        ((1.0, False, "no"), "truncated is 'no'"),
        ((1.0, np.zeros(2, bool), False), r"terminated is of shape \(2,\) bool"),
        ((1.0, 2, False), "terminated is 2"),
        ((10**400, False, False), "the reward is a whole number, too large for float32"),
        ((-(10**5000), False, False), "the reward is a whole number, too large for float32"),
        ((-1e300, False, False), r"the reward is -1e\+300 \(float\), too large for float32"),
        ((np.ma.masked, False, False), "the reward is a masked array"),
        ((1.0, np.ma.masked, False), "terminated is a masked array"),
    ],
)
def test_wrong_outcome_is_refused(ends: Any, complaint: str) -> None:
    with pytest.raises(SimulatorError, match=f"environment 0: {complaint}"):
        play(told(ends=lambda _: ends))


@pytest.mark.parametrize("num_environments", [1, 3])
@pytest.mark.parametrize(
    ("part", "wrong", "complaint"),
    [
        (
            "shows",
            lambda _, num_environments: np.zeros((num_environments, 1), np.float32),
            "observation of all environments is of another shape",
        ),
        ("shows", lambda _, __: np.zeros(3, np.float32), "observation of all environments is of another shape"),
        ("shows", lambda _, num_environments: np.zeros((num_environments, 3), complex), "another kind of number"),
        ("rewards", lambda _, __: 1.0, "rewards has shape"),
        ("rewards", lambda _, num_environments: np.zeros((num_environments, 1)), "rewards has shape"),
        (
            "shows",
            lambda _, num_environments: np.full((num_environments, 3), 1e300),
            r"of all environments has 1e\+300 at \[0, 0\], too large",
        ),
        (
            "shows",
            lambda _, num_environments: np.ma.zeros((num_environments, 3)),
            "observation of all environments is a masked array",
        ),
        (
            "rewards",
            lambda _, num_environments: np.full(num_environments, 1e300),
            r"rewards has 1e\+300 at \[0\], too large for float32",
        ),
        ("rewards", lambda _, num_environments: np.ma.zeros(num_environments), "rewards is a masked array"),
        ("terminated", lambda _, __: False, "terminated has shape"),
        ("terminated", lambda _, num_environments: np.zeros(num_environments), "terminated has shape .* float64"),
    ],
)
def test_vector_that_does_not_return_one_value_an_environment_is_refused(
    part: str, wrong: Callable[[int, int], Any], complaint: str, num_environments: int
) -> None:
    with pytest.raises(SimulatorError, match=complaint):
        play(told_vector(num_environments, **{part: wrong}))


@pytest.mark.parametrize("info", [None, [], "text"])
def test_info_that_is_no_mapping_is_named(info: Any) -> None:
    complaint = "its info is .*, expected a mapping, as Gymnasium's reset and step return it"
    with pytest.raises(SimulatorError, match=f"environment 0: {complaint}"):
        play(told(informs=lambda time: info if time else {}))
    with pytest.raises(SimulatorError, match=complaint):
        play(told_vector(informs=lambda time, _: info if time else {}))


def test_first_info_of_a_vector_that_is_no_mapping_is_named() -> None:
    with pytest.raises(UserError, match="its reset does not return an observation and a mapping"):
        told_vector(informs=lambda _, __: None)


def test_numbers_that_are_not_finite_are_left_to_the_check_of_all_steps() -> None:
    environment = told(shows=lambda _: np.array([0.0, np.inf, np.nan]), ends=lambda _: (-np.inf, False, False))
    environment.reset(0)
    now = environment.step({"agent": np.zeros((2, 1), int)}).kinds["agent"]
    assert np.isfinite(now.observations["obs"][0, 0]).tolist() == [True, False, False]
    assert now.rewards.tolist() == [[-np.inf]] * 2
