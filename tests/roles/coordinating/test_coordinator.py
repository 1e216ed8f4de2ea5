"""When a run checkpoints and ends, who may die, and what the run directory says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from srlhpc.comm.protocol import Command
from srlhpc.roles.coordinating.coordinator import ENDING_LIMIT_SECONDS, StepLostError
from srlhpc.roles.coordinating.run_files import cut_metrics
from srlhpc.roles.stillness import RELIEF_SECONDS, STANDSTILL_SECONDS
from tests.roles.coordinating.coordinator_setup import SILENCE_SECONDS, TRAINER, Coordinating, episode, update

# --- stopping ------------------------------------------------------------------------------------------------------


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


# --- ending --------------------------------------------------------------------------------------------------------


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


def test_nobody_may_exit_before_the_last_checkpoint_is_written(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.update(1)
    run.all_report(done=True)
    assert not run.report(2, done=True).exit
    run.send_part(1, 1)
    assert run.report(2, done=True).exit


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


# --- standstills ---------------------------------------------------------------------------------------------------


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


# --- checkpoints ---------------------------------------------------------------------------------------------------


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


# --- deaths --------------------------------------------------------------------------------------------------------


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


# --- files ---------------------------------------------------------------------------------------------------------

STATUS_KEYS = {
    "state", "reason", "attempt", "steps", "agent_steps", "frames", "updates", "version", "episodes", "return_mean",
    "steps_per_second", "policy_lag_mean", "policy_lag_max", "ranks_planned", "ranks_alive", "last_checkpoint",
    "seconds", "roles", "warnings", "phase", "time", "ranks", "timing", "bottleneck",
}  # fmt: skip


def test_status_has_every_key_from_the_start(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.wait(1)
    assert set(run.status) >= STATUS_KEYS
    assert (run.status["state"], run.status["phase"], run.status["attempt"]) == ("running", "starting", 7)
    assert (run.status["ranks_planned"], run.status["ranks_alive"]) == (4, 1)


def test_status_says_where_the_run_stands(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    run.episodes(4, 2.0)
    run.update(3)
    run.wait(2)
    status = run.status
    assert status["phase"] == "training"
    assert [status[key] for key in ("updates", "version", "steps", "agent_steps", "frames")] == [3, 3, 30, 60, 120]
    assert [status[key] for key in ("episodes", "return_mean")] == [4, 2.0]
    assert [status[key] for key in ("policy_lag_mean", "policy_lag_max")] == [0.5, 1]
    assert status["seconds"] == 2
    assert status["steps_per_second"] == 15
    assert status["ranks_alive"] == 4


def test_first_update_of_an_attempt_is_in_the_status_at_once_and_the_next_with_the_next_second(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.report(TRAINER)
    run.update(1)
    assert run.status["updates"] == 1
    run.update(2)
    assert run.status["updates"] == 1


def test_status_adds_up_what_roles_counted(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.report(2, counters={"actor-0": {"steps_acted": 5}, "policy_server-0": {"steps_inferred": 7}})
    run.report(3, counters={"actor-1": {"steps_acted": 6}})
    run.wait(1)
    assert run.status["roles"] == {"actor": {"steps_acted": 11}, "policy_server": {"steps_inferred": 7}}


def test_status_and_metrics_say_what_roles_spend_their_time_on_and_what_limits_the_run(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    for second in range(4):
        trainer = {"trainer-default-0": {"input_seconds": 3.0 * second, "computing_seconds": 1.0 * second}}
        run.report(TRAINER, counters=trainer, updates=[update(second + 1)])
        run.report(2, counters={"actor-0": {"environment_seconds": 9.0 * second, "input_seconds": 1.0 * second}})
        run.wait(1)
    expected = {"trainer": {"computing": 0.25, "input": 0.75}, "actor": {"environment": 0.9, "input": 0.1}}
    assert run.status["timing"] == expected
    assert run.status["bottleneck"].startswith("trainer waits 75 % of its time for batches; actors step 90 %")
    last = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    assert (last["timing"], last["bottleneck"]) == (expected, run.status["bottleneck"])


def test_status_and_metrics_have_the_statistics_of_the_last_episodes(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    run.report(2, episodes=[episode(1.0) | {"metrics": {"boxes": boxes}} for boxes in (1.0, 3.0)])
    run.update(1)
    run.wait(1)
    assert run.status["episode"] == run.metrics[-1]["episode"] == {"boxes": 2.0}


def test_metrics_end_with_the_episodes_that_were_told_after_the_last_update(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.all_report()
    run.update(1)
    run.wait(1)
    run.report(2, episodes=[episode(1.0)])
    run.end()
    assert [line["episodes"] for line in run.metrics] == [0, 1]


def test_metrics_of_a_run_that_was_stopped_end_with_its_last_update(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.all_report()
    run.update(1)
    run.wait(1)
    (tmp_path / "control" / "stop").touch()
    run.wait(1)
    assert run.report(TRAINER).stop
    run.report(2, episodes=[episode(1.0)])
    run.end()
    assert [line["episodes"] for line in run.metrics] == [0]


def test_status_after_the_end_says_how_it_ended(tmp_path: Path) -> None:
    run = Coordinating(tmp_path, {"updates": 1})
    run.update(1)
    run.end()
    assert (run.status["state"], run.status["phase"], run.status["reason"]) == ("finished", "ended", "updates")


def test_metrics_have_one_line_per_second_with_updates(tmp_path: Path) -> None:
    run = Coordinating(tmp_path)
    run.wait(1)
    run.update(1)
    run.wait(1)
    run.wait(1)
    run.update(2)
    run.wait(1)
    assert [line["updates"] for line in run.metrics] == [1, 2]
    line = run.metrics[-1]
    assert line["policies"]["default"]["loss"] == 0.25
    assert line["attempt"] == 7


def test_metrics_after_the_checkpoint_are_cut_when_a_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"steps": 10}\n{"steps": 20}\n{"steps": 30}\n{"ste')
    cut_metrics(path, 20)
    assert path.read_text() == '{"steps": 10}\n{"steps": 20}\n'


def test_cutting_metrics_that_are_not_there_makes_no_file(tmp_path: Path) -> None:
    cut_metrics(tmp_path / "metrics.jsonl", 20)
    assert list(tmp_path.iterdir()) == []
