"""Statistics of episodes in the panels that an environment declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from srlhpc.errors import UserError
from srlhpc.pictures.statistics import Statistics, statistics_of
from tests.launch.making_runs import make_run, settings
from tests.launch.staged import staged_run


def panels_of(statistics: Statistics) -> dict[str, list[str]]:
    return {panel.title: list(panel.statistics) for panel in statistics.panels}


@pytest.mark.parametrize(("axis", "x"), [("episodes", [10, 20]), ("steps", [40, 80]), ("seconds", [1, 2])])
def test_each_statistic_is_a_curve_against_the_axis(tmp_path: Path, axis: Any, x: list[float]) -> None:
    paths = staged_run(tmp_path, [{"box_move": 0.5, "box_lock": 1.0}, {"box_move": 0.25, "box_lock": 2.0}])
    (curve,) = statistics_of({"job": [paths]}, axis).curves("job", "box_lock")
    assert (curve.x.tolist(), curve.values.tolist()) == (x, [1.0, 2.0])


def test_statistic_that_not_every_line_has_gives_its_points_only(tmp_path: Path) -> None:
    paths = staged_run(tmp_path, [{"box_move": 0.5}, {"box_move": 0.5, "ramp_move": 4.0}])
    (curve,) = statistics_of({"job": [paths]}, "episodes").curves("job", "ramp_move")
    assert (curve.x.tolist(), curve.values.tolist()) == ([20.0], [4.0])


def test_declared_panels_without_statistics_of_these_episodes_are_left_out(tmp_path: Path) -> None:
    paths = staged_run(tmp_path, [{"box_move": 0.5, "unheard_of": 1.0}])
    assert panels_of(statistics_of({"job": [paths]}, "episodes")) == {"Boxes": ["box_move"]}


def test_each_statistic_has_a_panel_where_none_is_declared(tmp_path: Path) -> None:
    paths = staged_run(tmp_path, [{"box_move": 0.5, "speed": 1.0}], panels={})
    assert panels_of(statistics_of({"job": [paths]}, "episodes")) == {"box_move": ["box_move"], "speed": ["speed"]}


def test_panels_of_jobs_that_declare_different_ones_are_all_drawn(tmp_path: Path) -> None:
    statistics = [{"box_move": 0.5, "ramp_move": 1.0}]
    with_ramps = staged_run(tmp_path, statistics, name="with", panels={"Boxes": ["box_move"], "Ramps": ["ramp_move"]})
    without = staged_run(tmp_path, statistics, name="without", panels={"Boxes": ["box_move"]})
    statistics = statistics_of({"without": [without], "with": [with_ramps]}, "episodes")
    assert list(panels_of(statistics)) == ["Boxes", "Ramps"]


def test_seeds_of_a_job_have_a_curve_each(tmp_path: Path) -> None:
    runs = [staged_run(tmp_path, [{"box_move": float(seed)}], name=f"s{seed}", seed=seed) for seed in (1, 2)]
    curves = statistics_of({"job": runs}, "episodes").curves("job", "box_move")
    assert [(curve.seed, curve.values.tolist()) for curve in curves] == [(1, [1.0]), (2, [2.0])]


def test_declared_names_that_no_episode_has_are_refused_with_those_that_there_are(tmp_path: Path) -> None:
    paths = staged_run(tmp_path, [{"boxmove": 0.5}])
    with pytest.raises(UserError, match="names box_move, box_lock, ramp_move, but its episodes have boxmove"):
        statistics_of({"job": [paths]}, "episodes")


def test_run_without_an_ended_episode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run a has no statistics yet: no training episode has ended"):
        statistics_of({"job": [staged_run(tmp_path, [])]}, "episodes")


def test_environment_without_statistics_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"run a: its environment gives no statistics .* leave out --statistics"):
        statistics_of({"job": [staged_run(tmp_path, [{}, {}])]}, "episodes")


def test_runs_of_several_environments_are_refused(tmp_path: Path) -> None:
    other = make_run(tmp_path, settings({"factory": "catch"}, stop={"updates": 1}), "other")
    with pytest.raises(UserError, match=r"of several: tests\.launch\.staged \(job\), catch \(other\)"):
        statistics_of({"job": [staged_run(tmp_path, [{"box_move": 0.5}])], "other": [other]}, "episodes")
