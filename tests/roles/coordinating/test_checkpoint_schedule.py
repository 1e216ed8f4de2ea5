"""When a checkpoint is asked for, by the run's own clock or by hand."""

from __future__ import annotations

from pathlib import Path

from srlhpc.roles.coordinating.checkpoint_schedule import CheckpointSchedule
from tests.roles.coordinating.coordinator_setup import TRAINER, Coordinating


def test_first_checkpoint_is_asked_for_after_the_first_update(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, first_checkpoint=True)
    assert run.report(TRAINER).checkpoint == 0
    assert run.update(1).checkpoint == 1
    run.send_part(1, 1)
    assert run.update(2).checkpoint == 1
    assert run.files() == ["updates-000000001.h5"]


def test_checkpoint_is_asked_for_every_so_many_seconds(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, checkpoint_seconds=10.0)
    run.update(1)
    run.wait(9)
    assert run.report(TRAINER).checkpoint == 0
    run.wait(1)
    assert run.report(TRAINER).checkpoint == 1
    run.send_part(1, 1)
    run.wait(9)
    assert run.report(TRAINER).checkpoint == 1
    run.wait(1)
    assert run.report(TRAINER).checkpoint == 2


def test_no_checkpoint_is_written_before_the_first_update(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, checkpoint_seconds=10.0)
    run.wait(25)
    assert run.report(TRAINER).checkpoint == 0


def test_only_one_checkpoint_is_under_way(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, checkpoint_seconds=10.0)
    run.update(1)
    run.wait(10)
    run.wait(10)
    assert run.report(TRAINER).checkpoint == 1


def test_checkpoint_by_hand_is_due_before_the_first_update_and_only_once() -> None:
    schedule = CheckpointSchedule(None, 0.0, first=False)
    assert not schedule.is_due(1e6, updates=0)
    schedule.ask_by_hand()
    assert schedule.is_due(1.0, updates=0)
    schedule.note(1.0)
    assert not schedule.is_due(1e6, updates=5)
