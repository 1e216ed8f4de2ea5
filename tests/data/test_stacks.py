"""Stacks of frames as blocks hold them."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from srlhpc.data.blocks import NEW_STACKS, PolicyShapes, block_layout, request_layout
from srlhpc.data.layout import Axis, Field
from srlhpc.data.stack_storage import StackStorage
from srlhpc.data.stacks import build_stack, frames_of, own_frames, whole
from srlhpc.data.windows import window_layout
from srlhpc.environment import ArraySpec, Discrete, Kind, Stack

T, F = True, False
COLUMN = (Axis.RECORD, Axis.ENVIRONMENT, Axis.AGENT)
PONG = Kind("k", ("a", "b"), {"x": ArraySpec((4, 84, 84), "uint8")}, Discrete(2), stacks={"x": Stack(4, "zeros")})


def test_own_frames_count_from_a_beginning_and_are_many_before_the_first() -> None:
    assert own_frames(np.array([F, F, T, F, F, T])).tolist() == [255, 255, 1, 2, 3, 1]


def test_own_frames_of_a_long_episode_stay_many() -> None:
    assert own_frames(np.array([T] + [F] * 300))[[0, 253, 254, 300]].tolist() == [1, 254, 255, 255]


@pytest.mark.parametrize(
    ("filled_with", "expected"),
    [
        ("zeros", [[1, 2, 3], [2, 3, 4], [0, 0, 5], [0, 5, 6]]),
        ("newest", [[1, 2, 3], [2, 3, 4], [5, 5, 5], [5, 5, 6]]),
    ],
)
def test_stack_that_begins_anew_is_filled(filled_with: Literal["zeros", "newest"], expected: list[list[int]]) -> None:
    stack, own = Stack(3, filled_with), own_frames(np.array([[F], [F], [T], [F]]))
    # Frames 1 to 6, and zeros as the last, which -1 stands for.
    frames = np.array([1, 2, 3, 4, 5, 6, 0])
    assert frames[frames_of(own, stack)[:, 0]].tolist() == expected
    for record, whole_stack in enumerate(expected):
        seen = frames[record : record + 3].reshape(3, 1)
        assert build_stack(seen, own[record], stack)[:, 0].tolist() == whole_stack


@pytest.mark.parametrize(("filled_with", "expected"), [("zeros", [0, 0, 5]), ("newest", [5, 5, 5])])
def test_stored_stacks_are_those_of_their_block(filled_with: Literal["zeros", "newest"], expected: list[int]) -> None:
    storage = StackStorage(Field("x", (6, 1, 1), "int64", COLUMN, Stack(3, filled_with)), 2)
    storage.frames[0, :, 0, 0], storage.frames[1, :, 0, 0] = np.arange(1, 7), np.arange(11, 17)
    # Stacks 0 to 3 are of the first block, 4 to 7 of the second.
    found = storage.gather(np.array([1, 2, 4, 7]), np.array([255, 1, 255, 3], np.uint8))
    assert found.tolist() == [[2, 3, 4], expected, [11, 12, 13], [14, 15, 16]]


def test_block_has_every_frame_once() -> None:
    fields = {field.name: field for field in block_layout(PolicyShapes(PONG, {}, {}), 128, 8, 2).fields}
    assert fields["obs.x"].shape == (128 + 4, 8, 2, 84, 84)
    assert fields[NEW_STACKS].shape == (129, 8, 2)
    assert whole(fields["obs.x"]).shape == (129, 8, 2, 4, 84, 84)


def test_requests_and_windows_have_whole_stacks() -> None:
    shapes = PolicyShapes(PONG, {}, {})
    request = {field.name: field.shape for field in request_layout(shapes, 8, 2).fields}
    windows = {field.name: field.shape for field in window_layout(shapes, 3, 16).fields}
    assert request["obs.x"] == (8, 2, 4, 84, 84)
    assert windows["obs.x"] == (4, 16, 4, 84, 84)
    assert NEW_STACKS not in request.keys() | windows.keys()


def test_layouts_of_different_beginnings_differ() -> None:
    field = Field("x", (6, 1, 1), "int64", COLUMN)
    layouts = [
        block_layout(PolicyShapes(Kind("k", ("a",), PONG.observations, Discrete(2), stacks=stacks), {}, {}), 8, 1, 1)
        for stacks in ({"x": Stack(4, "zeros")}, {"x": Stack(4, "newest")}, {})
    ]
    assert len({layout.digest for layout in layouts}) == 3
    assert field.stack is None
