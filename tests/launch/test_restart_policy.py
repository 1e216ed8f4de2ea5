"""What the foreman does after an attempt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from srlhpc.launch.restart_policy import AttemptEnd, decide, is_endless, pause_seconds
from srlhpc.runs.outcome import Outcome

CRASH = AttemptEnd(
    Outcome("failed", "killed", ""),
    kind="",
    warned=False,
    terminated=False,
    restarts=0,
    restarts_allowed=3,
    restarts_lately=0,
    may_requeue=True,
    got_further=False,
)
INTERRUPTED = replace(CRASH, outcome=Outcome("interrupted", "signal", ""))


def test_finished_when_the_end_of_the_job_was_announced_too_then_end() -> None:
    assert decide(replace(CRASH, outcome=Outcome("finished", "steps", ""), warned=True)) == "end"


def test_crash_when_restarts_are_left_then_restart() -> None:
    assert decide(replace(CRASH, restarts=2)) == "restart"


def test_crash_when_no_restart_is_left_then_requeued_only_if_training_got_further() -> None:
    assert decide(replace(CRASH, restarts=3)) == "end"
    assert decide(replace(CRASH, restarts=3, got_further=True)) == "requeue"
    assert decide(replace(CRASH, restarts=3, got_further=True, may_requeue=False)) == "end"


def test_crash_when_it_comes_again_and_again_then_end_though_training_gets_further_each_time() -> None:
    # A restart is counted anew whenever there is a newer checkpoint.
    crash = replace(CRASH, restarts=0, got_further=True)
    assert [decide(replace(crash, restarts_lately=n)) for n in (5, 6, 9)] == ["restart", "end", "end"]
    assert is_endless(replace(crash, restarts_lately=6))
    one = replace(crash, restarts_allowed=1)
    assert [decide(replace(one, restarts_lately=n)) for n in (1, 2)] == ["restart", "end"]


def test_crash_when_no_restart_is_allowed_then_the_number_of_earlier_ones_does_not_matter() -> None:
    assert decide(replace(CRASH, restarts_allowed=0, got_further=True)) == "requeue"


@pytest.mark.parametrize("kind", ["user", "world", "difference", "gpu"])
def test_crash_when_it_would_come_again_at_once_then_end(kind: str) -> None:
    assert decide(replace(CRASH, kind=kind)) == "end"
    assert decide(replace(CRASH, kind=kind, warned=True)) == "end"


def test_announced_end_when_requeue_is_allowed_then_requeue_else_end() -> None:
    assert decide(replace(INTERRUPTED, warned=True)) == "requeue"
    assert decide(replace(CRASH, warned=True)) == "requeue"
    assert decide(replace(INTERRUPTED, warned=True, may_requeue=False)) == "end"


def test_terminated_when_the_end_was_announced_before_then_never_requeued() -> None:
    assert decide(replace(INTERRUPTED, warned=True, terminated=True)) == "end"


def test_terminated_when_ranks_crashed_meanwhile_then_no_restart() -> None:
    assert decide(replace(CRASH, terminated=True)) == "end"


def test_interrupted_by_hand_then_end() -> None:
    assert decide(INTERRUPTED) == "end"


def test_pause_when_restarts_repeat_then_it_doubles_up_to_a_limit() -> None:
    assert [pause_seconds(n) for n in (0, 1, 2, 3, 9)] == [0.0, 1.0, 2.0, 4.0, 30.0]


def test_end_without_its_last_checkpoint_is_not_trained_for_again_unless_the_job_goes_back_into_the_queue() -> None:
    unwritten = replace(CRASH, outcome=Outcome("failed", "checkpoint", ""), got_further=True)
    assert decide(unwritten) == "end"
    assert decide(replace(unwritten, warned=True)) == "requeue"


@pytest.mark.parametrize("reason", ["removed", "lease"])
def test_run_that_is_gone_or_somebody_elses_is_left(reason: str) -> None:
    assert decide(replace(CRASH, outcome=Outcome("failed", reason, ""), warned=True)) == "end"
