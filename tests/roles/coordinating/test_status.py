"""What status and metrics hold of a run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.roles.coordinating.coordinator_setup import TRAINER, Coordinating, episode, update

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
