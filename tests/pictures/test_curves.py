"""Learning curves and their confidence band."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from srlhpc.errors import UserError
from srlhpc.pictures.curves import Curve, confidence_band, grouped, read_curve
from srlhpc.runs.paths import RunPaths
from tests.launch.written_runs import write_metrics, written_run


def curve(returns: list[float], x: list[float] | None = None) -> Curve:
    return Curve("a", 1, np.array(x or np.arange(len(returns)), float), np.array(returns, float))


def test_curve_has_points_with_returns_only(tmp_path: Path) -> None:
    paths = written_run(tmp_path, "a", seed=4)
    write_metrics(paths, [(10, None), (20, 1.0), (30, 2.0)])
    with paths.metrics.open("a") as file:
        file.write('{"steps": 40, "retu')
    read = read_curve(paths, "seconds")
    assert (read.x.tolist(), read.values.tolist(), read.seed) == ([2.0, 3.0], [1.0, 2.0], 4)


def test_axis_of_a_curve_may_be_episodes(tmp_path: Path) -> None:
    paths = written_run(tmp_path, "a")
    paths.metrics.write_text('{"steps": 40, "episodes": 7, "return_mean": 1.0}\n')
    assert read_curve(paths, "episodes").x.tolist() == [7.0]


def test_curve_without_an_ended_episode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run a has no returns yet"):
        read_curve(written_run(tmp_path, "a"), "steps")


def test_runs_that_differ_in_seeds_alone_are_one_group(tmp_path: Path) -> None:
    runs = [written_run(tmp_path, name, seed=seed) for name, seed in [("a", 1), ("b", 2), ("c", 3)]]
    runs[2].spec.write_text(runs[2].spec.read_text().replace("1000", "2000"))
    assert {name: [run.name for run in group] for name, group in grouped(runs).items()} == {
        "catch": ["a", "b"],
        "catch (c)": ["c"],
    }


def test_band_of_equal_runs_has_no_width() -> None:
    band = confidence_band([curve([0.0, 2.0]), curve([0.0, 2.0])])
    np.testing.assert_allclose(band.mean, band.x * 2.0)
    np.testing.assert_array_equal(band.low, band.high)


def test_run_that_has_ended_keeps_its_last_value_in_the_band() -> None:
    band = confidence_band([curve([0.0, 4.0]), curve([0.0, 0.0, 0.0, 8.0])])
    assert (band.x[-1], band.mean[-1]) == (3.0, 6.0)


def test_band_of_normal_returns_covers_the_true_mean_about_as_often_as_promised() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(100):
        band = confidence_band([curve([value, value]) for value in rng.normal(5.0, 1.0, size=20)], seed=seed)
        covered += bool(band.low[0] <= 5.0 <= band.high[0])
    assert 86 <= covered <= 99


def test_episodes_without_an_agent_that_is_trained_are_told_from_none(tmp_path: Path) -> None:
    write_metrics(written_run(tmp_path, "run"), [(10, None)])
    with pytest.raises(UserError, match="no agent that is trained was in the game"):
        read_curve(RunPaths(tmp_path / "run"), "steps")
