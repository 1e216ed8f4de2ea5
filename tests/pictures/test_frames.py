"""Frames as environments draw them become pictures, or are refused with what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from srlhpc.errors import UserError
from srlhpc.pictures.frames import Frames


def shown(*drawn: Any) -> tuple[list[np.ndarray], list[str]]:
    """The pictures of frames one after the other, and what was said."""
    said: list[str] = []
    frames = Frames(said.append)
    return [frames.picture(one) for one in drawn], said


COLOURS = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        (COLOURS / 255.0, COLOURS),
        ((COLOURS / 255.0).astype(np.float16), COLOURS),
        (COLOURS.astype(np.int64), COLOURS),
        (COLOURS > 5, np.where(COLOURS > 5, 255, 0)),
        (COLOURS[:, :, 0], COLOURS[:, :, [0, 0, 0]]),
        (COLOURS[:, :, :1] / 255.0, COLOURS[:, :, [0, 0, 0]]),
        (np.dstack([COLOURS, np.zeros((2, 4), np.uint8)]), COLOURS),
        (np.tile(COLOURS, (3, 2, 1)).transpose(2, 0, 1), np.tile(COLOURS, (3, 2, 1))),
        (COLOURS.tolist()[-1:], None),
    ],
)
def test_frame_of_another_kind_is_converted_which_is_said_once(drawn: Any, expected: Any) -> None:
    if expected is None:
        drawn, expected = [COLOURS * 0, COLOURS / 255.0], COLOURS
    pictures, said = shown(drawn, drawn, drawn)
    for picture in pictures:
        assert picture.dtype == np.uint8
        np.testing.assert_array_equal(picture, expected)
    assert len(said) == 1
    assert said[0].endswith(f"shown as bytes {list(np.shape(expected))}")


def test_frame_of_bytes_in_colours_is_taken_without_a_word() -> None:
    pictures, said = shown(COLOURS)
    np.testing.assert_array_equal(pictures[0], COLOURS)
    assert said == []


@pytest.mark.parametrize(
    ("drawn", "found"),
    [
        (COLOURS * 1.0, r"float64 \[2, 4, 3\] with values from 0 to 23; expected are bytes"),
        (COLOURS.astype(np.int32) - 1, r"int32 \[2, 4, 3\] with values from -1 to 22"),
        (COLOURS.astype(np.int32) * 20, r"with values from 0 to 460"),
        (np.full((2, 4), np.nan), "with values from nan to nan"),
        (np.zeros((2, 4, 5), np.uint8), r"uint8 \[2, 4, 5\], which is no picture; draw bytes \(uint8\)"),
        (np.zeros((1, 2, 4, 3), np.uint8), r"uint8 \[1, 2, 4, 3\], which is no picture"),
        (np.zeros((0, 4, 3), np.uint8), r"uint8 \[0, 4, 3\], which is no picture"),
        (np.full((2, 4), "x"), r"<U1 \[2, 4\], which are no numbers"),
        ("+---+", "which is no picture"),
        (None, "draws no pictures"),
        ([], "draws no pictures"),
    ],
)
def test_frame_whose_meaning_is_not_clear_is_refused_with_what_it_is(drawn: Any, found: str) -> None:
    with pytest.raises(UserError, match=f"--video: .*{found}"):
        shown(drawn)


def test_float_frames_that_were_taken_for_shares_and_are_none_are_refused() -> None:
    with pytest.raises(UserError, match="with values from 200 to 200"):
        shown(np.zeros((2, 4)), np.full((2, 4), 200.0))


def test_frames_of_other_sizes_are_scaled_into_the_first_which_is_said_once() -> None:
    first = np.full((4, 6, 3), 7, np.uint8)
    pictures, said = shown(first, np.full((8, 6, 3), 9, np.uint8), np.full((2, 3, 3), 8, np.uint8))
    assert [picture.shape for picture in pictures] == [(4, 6, 3)] * 3
    # Half as wide, in the middle.
    assert pictures[1][0, :, 0].tolist() == [0, 9, 9, 9, 0, 0]
    assert (pictures[2] == 8).all()
    assert said == ["--video: frames vary in size (6 x 4 first, now 6 x 8); all are scaled to 6 x 4"]
