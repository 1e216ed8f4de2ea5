"""What the end of a run waits for, and when it gives up."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from srlhpc.roles.coordinating.coordinator import StepLostError
from srlhpc.roles.coordinating.ending import ENDING_LIMIT_SECONDS
from tests.roles.coordinating.coordinator_setup import TRAINER, Coordinating


def test_end_writes_a_last_checkpoint(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 3})
    assert run.update(3).checkpoint == 1
    run.end()
    assert run.files() == ["updates-000000003.h5"]


def test_stop_is_told_at_once_although_a_checkpoint_is_under_way(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, checkpoint_seconds=10.0)
    run.update(5)
    run.wait(11)
    assert run.report(TRAINER).checkpoint == 1
    (tmp_path / "control" / "stop").touch()
    run.wait(1)
    command = run.report(TRAINER)
    assert (command.stop, command.checkpoint) == (True, 2)
    assert run.report(2).stop
    run.send_part(2, 6)
    run.end_ranks()
    assert (run.outcome["state"], run.files()) == ("interrupted", ["updates-000000006.h5"])


def test_checkpoint_from_before_the_end_is_not_the_last(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 6}, checkpoint_seconds=10.0)
    run.update(5)
    run.wait(11)
    run.send_part(run.update(6).checkpoint - 1, 5)
    run.all_report(done=True)
    assert not run.report(2, done=True).exit
    run.end()
    assert run.files() == ["updates-000000005.h5", "updates-000000006.h5"]


def test_update_that_is_heard_of_after_the_last_checkpoint_asks_for_no_other(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    (tmp_path / "control" / "stop").touch()
    run.wait(1)
    asked = run.report(TRAINER).checkpoint
    # The part is quicker than the report of its update.
    run.send_part(asked, 6)
    assert run.update(6, due=True).checkpoint == asked
    run.end_ranks()
    assert (run.outcome["state"], run.files()) == ("interrupted", ["updates-000000006.h5"])


def test_part_that_does_not_come_fails_the_run_by_name(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.update(1)
    run.all_report(done=True)
    for record in run.records:
        record.silence_limit_seconds = 1e9
    with pytest.raises(StepLostError, match="asked to: the part of policy default for the last checkpoint$"):
        run.wait(ENDING_LIMIT_SECONDS + 1)


def test_rank_that_does_not_leave_fails_the_run_by_name(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.update(1)
    run.all_report(done=True)
    run.send_part(1, 1)
    for rank in (TRAINER, 2):
        assert run.report(rank, done=True).exit
    for record in run.records:
        record.silence_limit_seconds = 1e9
    with pytest.raises(StepLostError, match="asked to: actor-1$"):
        run.wait(ENDING_LIMIT_SECONDS + 1)


def test_nobody_may_exit_before_the_last_checkpoint_is_written(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.update(1)
    run.all_report(done=True)
    assert not run.report(2, done=True).exit
    run.send_part(1, 1)
    assert run.report(2, done=True).exit


def test_episodes_that_the_last_checkpoint_lacks_are_not_counted(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.episodes(3, 1.0)
    run.update(1)
    run.episodes(4, 1.0)
    run.send_part(1, 1)
    run.episodes(5, 1.0)
    run.end_ranks()
    kept = run.checkpoints.newest_valid()
    assert kept is not None
    assert kept.tree["meta"]["episodes"] == 7
    assert (run.status["episodes"], run.metrics[-1]["episodes"]) == (7, 7)


def test_nobody_may_exit_before_all_are_done(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.update(1)
    run.send_part(1, 1)
    run.report(1, done=True)
    assert not run.report(2, done=True).exit
    run.report(3, done=True)
    assert run.report(2, done=True).exit
    assert not run.coordinator.is_done


def test_dead_actor_is_not_waited_for_at_the_end(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    (tmp_path / "exits" / "3").write_text("137 1.0")
    run.wait(1)
    run.update(1)
    run.end()
    assert run.outcome["state"] == "finished"


def test_actors_that_die_while_the_run_ends_do_not_make_it_fail(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.update(1)
    for rank in (2, 3):
        (tmp_path / "exits" / str(rank)).write_text("137 1.0")
    run.wait(1)
    run.end()
    assert run.outcome["state"] == "finished"


def test_rank_that_does_not_end_in_time_fails_the_run_by_name(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.all_report()
    run.update(1)
    run.send_part(1, 1)
    run.report(1, done=True)
    run.report(2, done=True)
    for record in run.records:
        record.silence_limit_seconds = 1e9
    with pytest.raises(StepLostError, match=r"did not end within 60 s of being asked to: actor-1$"):
        run.wait(ENDING_LIMIT_SECONDS + 1)
    assert run.outcome["reason"] == "stuck"


@pytest.mark.parametrize("late", [TRAINER, 2])
def test_rank_that_works_is_waited_for_at_the_end_however_long_it_takes(tmp_path: Path, late: int) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.all_report()
    run.update(1)
    run.send_part(1, 1)
    for _ in range(20):
        run.wait(20)
        for rank in run.ranks:
            run.report(rank, done=rank != late)
    run.end_ranks()
    assert run.outcome["state"] == "finished"


def test_rank_that_cannot_report_is_waited_for_at_the_end_while_it_has_a_pulse(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.all_report()
    run.update(1)
    for beat in range(20):
        (tmp_path / "pulses" / str(TRAINER)).write_text(f"{beat}")
        run.wait(20)
        for rank in (2, 3):
            run.report(rank, done=True)
    run.report(TRAINER)
    run.end()
    assert run.outcome["state"] == "finished"


def test_serial_run_which_reports_only_news_is_waited_for_at_the_end(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 9})
    run.all_report()
    for record in run.records:
        record.silence_limit_seconds = math.inf
    (tmp_path / "control" / "stop").touch()
    for _ in range(30):
        run.wait(20)
    run.update(1)
    run.end()
    assert run.outcome["state"] == "interrupted"


def test_rank_that_reports_and_does_nothing_is_not_waited_for_at_the_end(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.all_report()
    run.update(1)
    run.send_part(1, 1)

    def wait_for_ever() -> None:
        for second in range(70):
            run.wait(1)
            for rank in run.ranks:
                run.report(rank, done=rank != 3, idle_seconds=float(second))

    with pytest.raises(StepLostError, match="did not end within 60 s of being asked to: actor-1$"):
        wait_for_ever()
    assert run.outcome["reason"] == "stuck"
