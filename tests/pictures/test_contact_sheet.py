"""Frames of an episode on one picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from srlhpc.pictures.contact_sheet import ContactSheet, sheet

pytest.importorskip("PIL")


def frame(value: int, width: int = 200, height: int = 100) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


def test_frames_of_a_sheet_stand_in_rows_of_four_in_order_with_labels_between() -> None:
    picture = np.asarray(sheet({step: frame(10 * step) for step in range(6)}))
    assert picture.shape == (2 * (100 + 24 + 6) + 6, 4 * (200 + 6) + 6, 3)
    middles = [[picture[80 + 130 * row, 100 + 206 * column, 0] for column in range(4)] for row in range(2)]
    assert middles == [[0, 10, 20, 30], [40, 50, 255, 255]]
    label = picture[6:30, 6:206]
    assert label.min() < 100 < label.max()


@pytest.mark.parametrize(("width", "shown"), [(12, 168), (200, 200), (960, 400)])
def test_small_and_large_frames_of_a_sheet_are_scaled(width: int, shown: int) -> None:
    picture = np.asarray(sheet({0: frame(0, width, width)}))
    assert picture.shape == (shown + 24 + 12, shown + 12, 3)


def test_frame_stays_as_it_was_though_the_environment_draws_on_its_array_again(tmp_path: Path) -> None:
    from PIL import Image

    drawn = frame(0)
    with ContactSheet(tmp_path / "sheet.png") as film:
        for value in (50, 150):
            drawn[:] = value
            film.add(drawn)
    with Image.open(tmp_path / "sheet.png") as image:
        picture = np.asarray(image)
    assert (picture[80, 100, 0], picture[80, 306, 0]) == (50, 150)


def test_sheet_leaves_no_file_if_playing_fails(tmp_path: Path) -> None:
    def play() -> None:
        with ContactSheet(tmp_path / "sheet.png") as film:
            film.add(frame(0))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        play()
    assert not (tmp_path / "sheet.png").exists()
