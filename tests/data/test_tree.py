"""Trees as bytes and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from srlhpc.data.tree import decode_tree, encode_tree, leaves


def test_leaves_come_with_their_paths_in_order() -> None:
    assert list(leaves({"b": {"x": 1, "y": {"z": None}}, "a": 2})) == [
        (("b", "x"), 1),
        (("b", "y", "z"), None),
        (("a",), 2),
    ]


@pytest.mark.parametrize("value", [0, -(2**62), 1.5, math.inf, True, None, "text; ünïcode", ""])
def test_plain_value_comes_back_with_its_type(value: Any) -> None:
    (back,) = decode_tree(encode_tree({"x": value})).values()
    assert back == value
    assert type(back) is type(value)


def test_nan_comes_back() -> None:
    assert math.isnan(decode_tree(encode_tree({"x": math.nan}))["x"])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
def test_array_comes_back_bit_for_bit(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    back = decode_tree(encode_tree({"before": np.ones(3), "x": {"y": array}, "after": np.ones(1)}))["x"]["y"]
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


def test_array_that_is_no_contiguous_memory_comes_back() -> None:
    array = np.arange(12).reshape(3, 4)[:, ::2].T
    np.testing.assert_array_equal(decode_tree(encode_tree({"x": array}))["x"], array)


def test_array_that_comes_back_may_be_written() -> None:
    decode_tree(encode_tree({"x": np.zeros(2)}))["x"][0] = 1


def test_numpy_scalar_comes_back_as_a_plain_number() -> None:
    assert decode_tree(encode_tree({"x": np.int64(3), "y": np.float32(0.5)})) == {"x": 3, "y": 0.5}


def test_bytes_do_not_follow_the_tree_when_it_changes() -> None:
    array = np.zeros(2)
    data = encode_tree({"x": array})
    array[:] = 1
    assert decode_tree(data)["x"].tolist() == [0, 0]


def test_memory_that_is_given_then_written_to_as_long_as_it_is_large_enough() -> None:
    first = encode_tree({"x": np.zeros(1000), "n": 9})
    second = encode_tree({"x": np.ones(1000), "n": 10_000}, first.base)
    assert second.base is first.base
    assert decode_tree(second)["n"] == 10_000
    third = encode_tree({"x": np.ones(2000)}, first.base)
    assert third.base is not first.base
    assert decode_tree(third)["x"].tolist() == [1.0] * 2000
