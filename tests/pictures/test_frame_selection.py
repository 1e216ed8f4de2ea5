"""An even selection of frames."""

from __future__ import annotations

import numpy as np
import pytest

from srlhpc.pictures.contact_sheet import FrameSelection


def selection(frames: int, most: int = 8) -> FrameSelection:
    """Of frames that hold their number."""
    made = FrameSelection(most)
    for number in range(frames):
        made.add(np.full((1, 1, 3), number % 256, np.uint8))
    return made


@pytest.mark.parametrize(
    ("frames", "chosen"),
    [(1, [0]), (3, [0, 1, 2]), (4, [0, 1, 2, 3]), (7, [0, 2, 4, 6]), (61, [0, 16, 40, 60])],
)
def test_frames_are_chosen_evenly_from_the_first_to_the_last(frames: int, chosen: list[int]) -> None:
    found = selection(frames).choose(4)
    assert list(found) == chosen
    assert [int(frame[0, 0, 0]) for frame in found.values()] == chosen


@pytest.mark.parametrize("most", [2, 7, 8])
@pytest.mark.parametrize("frames", [9, 100, 1000])
def test_few_of_many_frames_are_kept_at_even_distances(most: int, frames: int) -> None:
    kept = list(selection(frames, most).choose(frames))
    steps = set(np.diff(kept[:-1]).tolist())
    assert len(kept) <= most + 1
    assert len(steps) <= 1
    assert (kept[0], kept[-1]) == (0, frames - 1)
