"""Trees as bytes and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from srlhpc.data.tree import Tree, decode_tree, encode_tree, leaves


def encoded(tree: Tree) -> np.ndarray:
    return np.concatenate(encode_tree(tree))


def test_leaves_come_with_their_paths_in_order() -> None:
    assert list(leaves({"b": {"x": 1, "y": {"z": None}}, "a": 2})) == [
        (("b", "x"), 1),
        (("b", "y", "z"), None),
        (("a",), 2),
    ]


@pytest.mark.parametrize("value", [0, -(2**62), 1.5, math.inf, True, None, "text; ünïcode", ""])
def test_plain_value_comes_back_with_its_type(value: Any) -> None:
    (back,) = decode_tree(encoded({"x": value})).values()
    assert back == value
    assert type(back) is type(value)


def test_nan_comes_back() -> None:
    assert math.isnan(decode_tree(encoded({"x": math.nan}))["x"])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
def test_array_comes_back_bit_for_bit(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    back = decode_tree(encoded({"before": np.ones(3), "x": {"y": array}, "after": np.ones(1)}))["x"]["y"]
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


def test_array_that_is_no_contiguous_memory_comes_back() -> None:
    array = np.arange(12).reshape(3, 4)[:, ::2].T
    np.testing.assert_array_equal(decode_tree(encoded({"x": array}))["x"], array)


def test_array_that_comes_back_may_be_written() -> None:
    decode_tree(encoded({"x": np.zeros(2)}))["x"][0] = 1


def test_large_numbers_are_not_copied() -> None:
    data = encoded({"name": "any", "x": np.arange(8.0), "odd": np.ones(3, np.uint8), "late": np.arange(5)})
    back = decode_tree(data)
    assert np.shares_memory(back["x"], data)
    assert back["late"].flags.aligned
    assert back["late"].tolist() == [0, 1, 2, 3, 4]


def test_numpy_scalar_comes_back_as_a_plain_number() -> None:
    assert decode_tree(encoded({"x": np.int64(3), "y": np.float32(0.5)})) == {"x": 3, "y": 0.5}
