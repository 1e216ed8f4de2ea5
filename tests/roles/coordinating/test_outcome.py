"""Which limit of its job ends a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.roles.coordinating.coordinator_setup import TRAINER, Coordinating


@pytest.mark.parametrize(
    ("stop", "reason"), [({"updates": 3}, "updates"), ({"steps": 30}, "steps"), ({"steps": 21}, "steps")]
)
def test_run_stops_at_its_limit_of_trained_steps_or_updates(tmp_path: Path, stop: dict[str, int], reason: str) -> None:
    run = Coordinating(tmp_path, stop)
    assert not run.update(2).stop
    assert run.update(3).stop
    run.end()
    assert run.outcome["state"] == "finished"
    assert run.outcome["reason"] == reason


def test_run_stops_after_its_hours_over_all_attempts(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"hours": 1.0}, restored={"seconds": 3000.0})
    run.wait(599)
    assert not run.report(TRAINER).stop
    run.wait(1)
    assert run.report(TRAINER).stop
    run.end()
    assert run.outcome["reason"] == "hours"


def test_run_stops_at_its_mean_return(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"return_mean": 2.0})
    run.episodes(100, 2.0)
    assert run.report(TRAINER).stop
    run.end()
    assert run.outcome["reason"] == "return_mean"


def test_mean_that_ended_the_run_is_not_moved_by_later_episodes(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"return_mean": 2.0})
    run.episodes(100, 2.0)
    run.episodes(50, 0.0)
    assert run.report(TRAINER).stop
    run.end()
    assert (run.status["state"], run.status["return_mean"]) == ("finished", 2.0)


def test_mean_return_counts_only_from_100_episodes_on(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"return_mean": 2.0})
    run.episodes(99, 1000.0)
    assert not run.report(TRAINER).stop
    run.episodes(1, 1000.0)
    assert run.report(TRAINER).stop


def test_mean_return_is_of_the_last_100_episodes(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"return_mean": 2.0})
    run.episodes(200, -50.0)
    run.episodes(99, 2.0)
    assert not run.report(TRAINER).stop
    run.episodes(1, 2.0)
    assert run.report(TRAINER).stop


def test_restored_window_counts(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"return_mean": 2.0}, restored={"returns": [2.0] * 99})
    assert not run.report(TRAINER).stop
    run.episodes(1, 2.0)
    assert run.report(TRAINER).stop


def test_only_the_first_policys_steps_stop_the_run(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 3})
    assert not run.update(50, policy="other").stop


def test_mailbox_stop_interrupts_the_run(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    mail = tmp_path / "control" / "stop"
    mail.touch()
    run.wait(1)
    assert not mail.exists()
    assert run.report(TRAINER).stop
    run.end()
    assert (run.outcome["state"], run.outcome["reason"]) == ("interrupted", "signal")


def test_mailbox_stop_after_the_limit_changes_nothing(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.update(1)
    (tmp_path / "control" / "stop").touch()
    run.wait(1)
    run.report(TRAINER)
    run.end()
    assert run.outcome["state"] == "finished"
