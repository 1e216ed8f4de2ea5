"""Actions that the adapters hand to simulators are members of the simulators' spaces."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from envs._gymnasium_actions import ActionCodec, action_codec
from srlhpc.environment import Continuous, MultiDiscrete
from srlhpc.errors import UserError

INTEGERS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
DRAWS = st.floats(width=32, allow_nan=False)


def played(codec: ActionCodec, drawn: Any) -> Any:
    """The one action that a simulator gets."""
    rows = np.array(drawn, codec.space.array.dtype).reshape(1, *codec.space.array.shape)
    (action,) = codec.one_by_one(codec.decode(rows))
    return action


def assert_member(space: Any, drawn: Any) -> None:
    action = played(action_codec(space, "here"), drawn)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert space.contains(action), (space, drawn, action)


@st.composite
def integer_boxes(draw: Any) -> spaces.Box:
    dtype = np.dtype(draw(st.sampled_from(INTEGERS)))
    info, shape = np.iinfo(dtype), draw(st.sampled_from([(), (1,), (3,), (2, 2)]))
    numbers = st.integers(int(info.min), int(info.max)) | st.sampled_from([int(info.min), int(info.max), 0, 1])
    one, two = (draw(npst.arrays(dtype, shape, elements=numbers)) for _ in range(2))
    low, high = np.minimum(one, two), np.maximum(one, two)
    if dtype.kind == "i" and draw(st.booleans()):
        return spaces.Box(-np.inf, np.inf, shape, dtype)
    return spaces.Box(np.asarray(low), np.asarray(high), dtype=dtype)


@st.composite
def float_boxes(draw: Any) -> spaces.Box:
    dtype = np.dtype(draw(st.sampled_from(FLOATS)))
    width, shape = 8 * dtype.itemsize, draw(st.sampled_from([(), (1,), (3,), (2, 2)]))
    most = float(np.finfo(dtype).max)
    numbers = st.floats(width=width, allow_nan=False) | st.sampled_from([-most, most, -np.inf, np.inf, -1.0, 0.0, 1.0])
    one, two = (np.asarray(draw(npst.arrays(dtype, shape, elements=numbers))) for _ in range(2))
    low, high = np.minimum(one, two), np.maximum(one, two)
    low, high = np.where(low == np.inf, -np.inf, low), np.where(high == -np.inf, np.inf, high)
    return spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype)


@settings(max_examples=200, deadline=None)
@given(space=integer_boxes() | float_boxes(), data=st.data())
def test_actions_of_boxes_are_members_of_them(space: spaces.Box, data: st.DataObject) -> None:
    size = int(np.prod(space.shape))
    assert_member(space, data.draw(st.lists(DRAWS, min_size=size, max_size=size)))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_actions_of_choices_are_members_of_their_spaces(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(INTEGERS[:-1]))
    count, start = data.draw(st.integers(1, 50)), data.draw(st.integers(0 if dtype.startswith("u") else -50, 50))
    choice = data.draw(st.integers(0, count - 1))
    assert_member(spaces.Discrete(count, start=start, dtype=np.dtype(dtype).type), choice)
    assert_member(spaces.MultiDiscrete([count, 2], start=[start, 1], dtype=dtype), [choice, 1])
    assert_member(spaces.MultiBinary((2, 2)), [choice % 2, 0, 1, 1])


def shares(space: spaces.Box) -> dict[int, float]:
    """How often each integer comes where what is drawn is uniform in [-1, 1]."""
    codec = action_codec(space, "here")
    drawn = np.linspace(-1, 1, 30_000, endpoint=False, dtype=np.float32)[:, None]
    values, counts = np.unique(codec.decode(drawn), return_counts=True)
    return {int(value): float(count) / len(drawn) for value, count in zip(values, counts, strict=True)}


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 3), (-2, 2), (-7, -3), (5, 5), (0, 254)])
def test_every_integer_of_a_box_has_an_equal_share(low: int, high: int) -> None:
    found = shares(spaces.Box(low, high, (1,), np.int64))
    assert list(found) == list(range(low, high + 1))
    assert list(found.values()) == pytest.approx([1 / len(found)] * len(found), abs=1e-3)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_extremes_of_an_integer_type_are_reached_without_wrapping(dtype: str) -> None:
    info = np.iinfo(dtype)
    codec = action_codec(spaces.Box(int(info.min), int(info.max), (3,), np.dtype(dtype).type), "here")
    lowest, middle, highest = played(codec, [-9.0, 0.0, 9.0]).tolist()
    assert (lowest, highest) == (info.min, info.max)
    assert middle == (int(info.min) + int(info.max) + 1) // 2


def test_integer_dimension_without_bounds_is_rounded_to_the_nearest() -> None:
    codec = action_codec(spaces.Box(-np.inf, np.inf, (6,), np.int32), "here")
    assert played(codec, [-2.6, -0.4, 0.6, 1.4, 1e30, -1e30]).tolist() == [-3, 0, 1, 1, 2**31 - 1, -(2**31)]
    half = action_codec(spaces.Box(np.array([0]), np.array([np.inf]), dtype=np.int32), "here")
    assert [played(half, [drawn]).tolist() for drawn in (-3.0, 2.4, 1e30)] == [[0], [2], [2**31 - 1]]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("low_is_finite", [False, True])
def test_largest_float_is_no_bound(dtype: str, low_is_finite: bool) -> None:
    most = np.finfo(dtype).max
    space = spaces.Box(0.0 if low_is_finite else -most, most, (2,), np.dtype(dtype).type)
    assert played(action_codec(space, "here"), [0.5, 3.0]).tolist() == [0.5, 3.0]


def test_largest_float32_is_no_bound_of_a_float64_box() -> None:
    most = float(np.finfo(np.float32).max)
    assert played(action_codec(spaces.Box(-most, most, (2,), np.float64), "here"), [0.5, -3.0]).tolist() == [0.5, -3.0]


def test_wide_bounds_that_float32_spans_are_scaled() -> None:
    assert played(action_codec(spaces.Box(-1e30, 1e30, (2,)), "here"), [1.0, -0.5]) == pytest.approx([1e30, -5e29])
    assert played(action_codec(spaces.Box(30_000, 60_000, (1,), np.float16), "here"), [0.0]).tolist() == [44992.0]


def test_actions_of_a_bool_box_are_bools() -> None:
    assert played(action_codec(spaces.Box(0, 1, (2,), np.bool_), "here"), [-0.1, 0.1]).tolist() == [False, True]


@pytest.mark.parametrize("space", [spaces.Box(0, 1, (0,)), spaces.MultiDiscrete(np.zeros(0, np.int64))])
def test_action_space_without_a_dimension_is_refused(space: Any) -> None:
    with pytest.raises(UserError, match="no dimension, so there is nothing to decide"):
        action_codec(space, "here")


def test_kinds_of_spaces_stay_what_they_were() -> None:
    assert action_codec(spaces.Box(0, 3, (1,), np.int64), "here").space == Continuous(1)
    assert action_codec(spaces.MultiBinary(2), "here").space == MultiDiscrete((2, 2))


@pytest.mark.parametrize("space", [spaces.Discrete(3 * 10**9), spaces.MultiDiscrete([600_000, 600_000])])
def test_more_choices_than_a_network_can_have_outputs_for_are_refused(space: Any) -> None:
    words = f"here: its action space {type(space).__name__} has [0-9,]+ choices"
    with pytest.raises(UserError, match=f"{words}, .*; possible are 1,000,000: split it into the digits"):
        action_codec(space, "here")


def test_digits_of_a_large_number_are_taken() -> None:
    assert action_codec(spaces.MultiDiscrete([1000, 1000, 3000]), "here").space == MultiDiscrete((1000, 1000, 3000))
