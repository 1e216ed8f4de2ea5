"""Films play as fast as the environment says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from srlhpc.pictures.video import film


def frames(count: int, width: int = 8) -> list[np.ndarray]:
    return [np.full((6, width, 3), 5 * number, np.uint8) for number in range(count)]


@pytest.mark.parametrize(("per_second", "kept"), [(4, 30), (15, 30), (30, 30), (50, 30), (60, 15), (125, 10)])
def test_gif_lasts_as_long_as_the_play(per_second: float, kept: int, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    with film(tmp_path / "film.gif", per_second) as shown:
        for frame in frames(30):
            shown.add(frame)
    milliseconds = []
    with image.open(tmp_path / "film.gif") as opened:
        for number in range(opened.n_frames):
            opened.seek(number)
            milliseconds.append(opened.info["duration"])
    assert len(milliseconds) == kept
    # Viewers slow down what is shorter.
    assert min(milliseconds) >= 20
    assert sum(milliseconds) == pytest.approx(30_000 / per_second, abs=5)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("per_second", [13.3333, 30, 125])
def test_mp4_has_the_speed_of_the_play_and_takes_odd_sizes_in_silence(
    per_second: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("imageio_ffmpeg")
    import imageio.v2 as imageio

    with film(tmp_path / "film.mp4", per_second) as shown:
        for frame in frames(5, width=7):
            shown.add(frame)
    with imageio.get_reader(tmp_path / "film.mp4") as reader:
        assert reader.get_meta_data()["fps"] == pytest.approx(per_second, rel=0.01)
        assert reader.get_meta_data()["size"] == (8, 6)
    assert caplog.records == []
