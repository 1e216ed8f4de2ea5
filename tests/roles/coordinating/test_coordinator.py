"""Who may die, when a standstill ends a run, and when trainers and the mailbox ask for checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from srlhpc.comm.protocol import Command
from srlhpc.roles.coordinating.coordinator import StepLostError
from srlhpc.roles.coordinating.ending import ENDING_LIMIT_SECONDS
from srlhpc.roles.stillness import RELIEF_SECONDS, STANDSTILL_SECONDS
from tests.roles.coordinating.coordinator_setup import SILENCE_SECONDS, TRAINER, Coordinating, episode

# --- standstills -----------------------------------------------------------------------------------------------------


class Still:
    """A run whose ranks report every second that nothing moves."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.run = Coordinating(folder, **settings)
        self.run.all_report()
        self.run.update(4)
        self.second = 0
        self.busy: dict[int, float] = {}
        """Rank to the idle seconds that it reports instead."""
        self.commands: dict[int, Command] = {}

    def pass_by(self, seconds: int) -> None:
        for _ in range(seconds):
            self.second += 1
            self.run.wait(1)
            for rank in self.run.ranks:
                idle = self.busy.get(rank, float(self.second))
                waits = {f"role-{rank}": "waits for a grant"}
                self.commands[rank] = self.run.report(rank, idle_seconds=idle, waits=waits)


def test_standstill_ends_the_run_within_a_minute_with_who_waits_and_the_stacks_of_all(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    still = Still(tmp_path)
    still.pass_by(int(STANDSTILL_SECONDS) - 1)
    assert not any(command.stacks for command in still.commands.values())
    with pytest.raises(StepLostError, match="although all ranks report: role-1, role-2, role-3: waits for a grant"):
        still.pass_by(20)
    assert still.second < 60
    assert all(command.stacks for command in still.commands.values())
    assert still.run.outcome["reason"] == "standstill"
    assert "test_coordinator.py" in capfd.readouterr().err


@pytest.mark.parametrize("rank", [TRAINER, 2])
def test_rank_that_works_is_no_standstill(tmp_path: Path, rank: int) -> None:
    still = Still(tmp_path)
    still.busy[rank] = 0.5
    still.pass_by(200)
    assert still.run.status["state"] == "running"


def test_rank_that_is_inside_a_piece_of_work_is_no_standstill(tmp_path: Path) -> None:
    still = Still(tmp_path)
    for record in still.run.records:
        record.silence_limit_seconds = 1e9
    del still.run.ranks[TRAINER]
    still.pass_by(200)
    assert still.run.status["state"] == "running"


def test_run_that_moves_again_is_not_ended(tmp_path: Path) -> None:
    still = Still(tmp_path)
    still.pass_by(int(STANDSTILL_SECONDS) + 2)
    assert still.commands[2].stacks
    still.busy[2] = 0.0
    still.pass_by(100)
    assert not still.commands[2].stacks


def test_dead_rank_does_not_hide_a_standstill(tmp_path: Path) -> None:
    still = Still(tmp_path)
    (tmp_path / "exits" / "3").write_text("137 1.0")
    still.run.wait(1)
    del still.run.ranks[3]
    with pytest.raises(StepLostError, match="nothing has moved"):
        still.pass_by(59)


def test_trainers_that_may_wait_for_each_other_are_relieved_long_before(tmp_path: Path) -> None:
    still = Still(tmp_path, may_relieve=True)
    still.pass_by(int(RELIEF_SECONDS) + 2)
    assert still.commands[TRAINER].relief == 1
    still.pass_by(int(RELIEF_SECONDS))
    assert still.commands[TRAINER].relief == 2
    other = Still(tmp_path / "one trainer")
    other.pass_by(20)
    assert other.commands[TRAINER].relief == 0


# --- checkpoints -----------------------------------------------------------------------------------------------------


def test_trainer_asks_for_a_checkpoint_at_its_update(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    assert run.update(4).checkpoint == 0
    assert run.update(5, due=True).checkpoint == 1


def test_mailbox_checkpoint_is_written_once_and_training_goes_on(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.update(2)
    (tmp_path / "control" / "checkpoint").touch()
    run.wait(1)
    command = run.report(TRAINER)
    assert (command.checkpoint, command.stop) == (1, False)
    run.send_part(1, 2)
    run.wait(SILENCE_SECONDS / 2)
    assert run.report(TRAINER).checkpoint == 1
    assert run.files() == ["updates-000000002.h5"]


def test_mailbox_is_looked_at_a_few_times_a_second_however_often_ranks_report(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.update(2)
    mail = tmp_path / "control" / "checkpoint"
    mail.touch()
    for _ in range(20):
        run.report(TRAINER)
    assert mail.exists()
    run.wait(1)
    assert not mail.exists()


def test_coordinator_says_which_checkpoint_is_wanted_and_which_is_written(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, first_checkpoint=True)
    assert run.update(1).checkpoint == 1
    assert (run.coordinator.checkpoint_asked, run.coordinator.checkpoint_written) == (1, 0)
    run.send_part(1, 1)
    run.report(TRAINER)
    assert run.coordinator.checkpoint_written == 1


def test_checkpoint_that_cannot_be_written_is_a_warning_and_training_goes_on(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, first_checkpoint=True)
    (tmp_path / "checkpoints").rmdir()
    (tmp_path / "checkpoints").write_text("in the way")
    run.update(1)
    run.send_part(1, 1)
    run.wait(1)
    (warning,) = run.status["warnings"]
    assert "checkpoint at update 1 could not be written" in warning
    assert run.status["state"] == "running"
    assert not run.update(2).stop


def test_warning_goes_when_a_later_checkpoint_is_written(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, checkpoint_seconds=10.0)
    (tmp_path / "checkpoints").rmdir()
    (tmp_path / "checkpoints").write_text("in the way")
    run.update(1)
    run.wait(10)
    run.send_part(1, 1)
    (tmp_path / "checkpoints").unlink()
    run.wait(10)
    run.send_part(2, 1)
    run.wait(1)
    assert run.status["warnings"] == []
    assert run.status["last_checkpoint"] == "updates-000000001.h5"


# --- deaths ----------------------------------------------------------------------------------------------------------


def test_training_goes_on_without_a_killed_actor(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    (tmp_path / "exits" / "2").write_text("137 1.0")
    run.wait(1)
    command = run.report(TRAINER)
    assert (command.stop, command.dead) == (False, [2])
    assert run.status["warnings"] == ["rank 2 (actor-0 on host-2): was ended by SIGKILL"]
    assert run.status["ranks_alive"] == 3


def test_death_of_the_last_actor_fails_the_run(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    (tmp_path / "exits" / "2").write_text("137 1.0")
    run.wait(1)
    (tmp_path / "exits" / "3").write_text("139 1.0")
    with pytest.raises(StepLostError, match="no actor is left"):
        run.wait(1)
    assert run.outcome["state"] == "failed"
    assert "rank 3 (actor-1 on host-3): was ended by SIGSEGV" in run.outcome["message"]


def test_death_of_a_trainer_fails_the_run_by_name(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    (tmp_path / "exits" / "1").write_text("137 1.0")
    with pytest.raises(StepLostError):
        run.wait(1)
    assert run.outcome == {
        "state": "failed",
        "reason": "killed",
        "message": "rank 1 (trainer-default-0 on host-1): was ended by SIGKILL",
    }
    assert run.status["state"] == "failed"


def test_trainer_that_is_silent_too_long_counts_as_dead(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    run.wait(SILENCE_SECONDS)
    for rank in (2, 3):
        run.report(rank)
    with pytest.raises(StepLostError, match="trainer-default-0.*silent for 31 s"):
        run.wait(1)


def test_suspended_job_takes_no_rank_for_dead_and_counts_silence_from_then_on(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    run.suspend(100 * SILENCE_SECONDS)
    assert run.status["ranks_alive"] == 4
    run.all_report()
    run.wait(SILENCE_SECONDS)
    with pytest.raises(StepLostError, match="trainer-default-0.*silent for 31 s"):
        run.wait(1)


def test_job_that_is_suspended_while_it_ends_is_waited_for(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.all_report()
    run.update(1)
    run.suspend(100 * ENDING_LIMIT_SECONDS)
    run.all_report()
    run.end()
    assert run.outcome["state"] == "finished"


def test_rank_that_has_not_started_yet_is_not_silent(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.wait(10 * SILENCE_SECONDS)
    assert run.status["phase"] == "starting"


def test_report_of_a_rank_that_counts_as_dead_is_ignored(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    (tmp_path / "exits" / "2").write_text("137 1.0")
    run.wait(1)
    run.ranks[2].report(episodes=[episode(1.0)])
    run.coordinator.poll()
    assert run.ranks[2].listen() is None
    assert run.progress.episodes == 0


def test_failing_environment_ends_the_run_as_failed_with_its_message(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    run.update(1)
    message = "environment x on rank 2 (actor-0), group 0, step 9: ValueError: no"
    (tmp_path / "failures" / "rank-00002.json").write_text(json.dumps({"kind": "environment", "message": message}))
    run.wait(1)
    command = run.report(TRAINER)
    assert (command.stop, command.checkpoint) == (True, 1)
    run.end()
    assert (run.outcome["state"], run.outcome["reason"]) == ("failed", "environment")
    assert message in run.outcome["message"]
    assert run.files() == ["updates-000000001.h5"]


def test_diverged_trainer_fails_the_run_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, first_checkpoint=True)
    run.update(1)
    run.send_part(1, 1)
    content = {"kind": "diverged", "message": "DivergedError: the loss is nan"}
    (tmp_path / "failures" / "rank-00001.json").write_text(json.dumps(content))
    with pytest.raises(StepLostError, match="the loss is nan"):
        run.wait(1)
    assert run.outcome["reason"] == "diverged"
    assert run.files() == ["updates-000000001.h5"]


def test_half_written_failure_is_read_later(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    (tmp_path / "failures" / "rank-00002.json").write_text('{"kind": "envi')
    run.wait(1)
    assert run.report(TRAINER).dead == []
