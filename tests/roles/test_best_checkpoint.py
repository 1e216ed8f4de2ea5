"""Which checkpoint is kept as the best: by full means as `stop.return_mean`, by evaluations where there are some."""

from __future__ import annotations

from pathlib import Path

from srlhpc.data.checkpoint import read_checkpoint, read_score
from srlhpc.data.checkpoint_names import name_of
from tests.roles.coordinating.coordinator_setup import Coordinating

EVALUATOR = 3


def checkpoint_at(run: Coordinating, updates: int) -> float | None:
    """Asks for a checkpoint by hand and gives its score."""
    run.update(updates)
    (run.folder / "control" / "checkpoint").touch()
    run.wait(1)
    run.send_part(run.update(updates).checkpoint, updates)
    return read_score(run.folder / "checkpoints" / name_of(updates))


def evaluation(version: int, mean: float | None) -> dict[str, object]:
    return {"version": version, "episodes": 5, "return_mean": mean, "return_std": 0.0, "length_mean": 3.0}


def test_lucky_first_episodes_are_no_score(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.episodes(99, 1000.0)
    assert checkpoint_at(run, 1) is None
    run.episodes(100, 2.0)
    assert [checkpoint_at(run, updates) for updates in (2, 3, 4, 5)] == [2.0] * 4
    assert run.files() == ["updates-000000003.h5", "updates-000000004.h5", "updates-000000005.h5"]


def test_evaluation_decides_where_there_are_evaluators(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, is_evaluated=True)
    run.episodes(100, 1000.0)
    assert checkpoint_at(run, 1) is None
    run.report(EVALUATOR, evaluations=[evaluation(1, 7.0)])
    assert checkpoint_at(run, 2) == 7.0
    run.report(EVALUATOR, evaluations=[evaluation(2, 3.0)])
    assert [checkpoint_at(run, updates) for updates in (3, 4, 5, 6)] == [3.0] * 4
    assert run.files()[0] == "updates-000000002.h5"


def test_late_evaluation_of_older_weights_and_one_without_returns_score_nothing(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, is_evaluated=True)
    run.report(EVALUATOR, evaluations=[evaluation(5, 1.0), evaluation(4, 9.0)])
    assert checkpoint_at(run, 6) == 1.0
    run.report(EVALUATOR, evaluations=[evaluation(6, None)])
    assert checkpoint_at(run, 7) is None


def test_resumed_run_keeps_its_last_evaluation(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    run = Coordinating(tmp_path / "first", is_evaluated=True)
    run.report(EVALUATOR, evaluations=[evaluation(1, 7.0)])
    checkpoint_at(run, 2)
    restored = read_checkpoint(tmp_path / "first" / "checkpoints" / "updates-000000002.h5")["meta"]
    (tmp_path / "second").mkdir()
    assert checkpoint_at(Coordinating(tmp_path / "second", restored=restored, is_evaluated=True), 3) == 7.0
