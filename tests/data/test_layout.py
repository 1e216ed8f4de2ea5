"""Where the fields of a message lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srlhpc.data.layout import ALIGNMENT_BYTES, HEADER_BYTES, Field, Layout, prefixed

DTYPES = ["bool", "uint8", "int64", "float32"]
FIELDS = st.lists(st.tuples(st.lists(st.integers(0, 5), max_size=3), st.sampled_from(DTYPES)), max_size=6)


def layout_of(described: list[tuple[list[int], str]]) -> Layout:
    return Layout.of(Field(f"f{i}", tuple(shape), dtype) for i, (shape, dtype) in enumerate(described))


def test_fields_follow_the_header_on_borders_of_64_bytes() -> None:
    layout = Layout.of([Field("a", (65,), "uint8"), Field("b", (), "float32"), Field("c", (3, 2), "int64")])
    assert layout.offsets == (128, 256, 320)
    assert layout.size_bytes == 384


def test_message_without_fields_is_its_header() -> None:
    assert Layout.of([]).size_bytes == HEADER_BYTES == 128


def test_header_is_sixteen_whole_numbers_in_place() -> None:
    layout = Layout.of([])
    buffer = layout.allocate()
    layout.header(buffer)[15] = -1
    assert buffer[120:].tolist() == [255] * 8


@given(FIELDS)
def test_fields_are_aligned_apart_and_inside_the_message(described: list[tuple[list[int], str]]) -> None:
    layout = layout_of(described)
    buffer = layout.allocate()
    assert buffer.ctypes.data % ALIGNMENT_BYTES == 0
    end = HEADER_BYTES
    for field, offset in zip(layout.fields, layout.offsets, strict=True):
        assert offset % ALIGNMENT_BYTES == 0
        assert offset >= end
        end = offset + field.size_bytes
    assert end <= layout.size_bytes


@given(FIELDS)
def test_writing_one_view_changes_that_field_of_the_buffer_only(described: list[tuple[list[int], str]]) -> None:
    layout = layout_of(described)
    buffer = layout.allocate()
    for number, view in enumerate(layout.views(buffer).values()):
        view[...] = number % 2
    again = layout.views(buffer.copy())
    assert all((view == number % 2).all() for number, view in enumerate(again.values()))
    assert not layout.header(buffer).any()


def test_new_message_is_zero() -> None:
    assert not Layout.of([Field("a", (9,), "float32")]).allocate().any()


@pytest.mark.parametrize(
    "other",
    [
        Field("b", (2, 3), "float32"),
        Field("a", (3, 2), "float32"),
        Field("a", (2, 3), "int32"),
        Field("a", (2, 3, 1), "float32"),
    ],
)
def test_digest_differs_where_name_shape_or_dtype_does(other: Field) -> None:
    assert Layout.of([other]).digest != Layout.of([Field("a", (2, 3), "float32")]).digest


def test_digest_does_not_depend_on_how_a_dtype_is_spelt() -> None:
    assert Layout.of([Field("a", (2,), "f4")]).digest == Layout.of([Field("a", (2,), "float32")]).digest


def test_digest_depends_on_the_order_of_fields() -> None:
    a, b = Field("a", (1,), "bool"), Field("b", (1,), "bool")
    assert Layout.of([a, b]).digest != Layout.of([b, a]).digest


def test_prefixed_views_lose_the_prefix_and_others_are_left_out() -> None:
    one = np.zeros(1)
    assert prefixed({"obs.x": one, "observer": one, "obs.y.z": one}, "obs.").keys() == {"x", "y.z"}
