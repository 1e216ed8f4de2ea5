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


def test_finished_run_ends_though_the_end_of_the_job_was_announced_too() -> None:
    assert decide(replace(CRASH, outcome=Outcome("finished", "steps", ""), warned=True)) == "end"


def test_crash_restarts_while_restarts_are_left() -> None:
    assert decide(replace(CRASH, restarts=2)) == "restart"


def test_crash_without_restarts_left_is_requeued_only_if_training_got_further() -> None:
    assert decide(replace(CRASH, restarts=3)) == "end"
    assert decide(replace(CRASH, restarts=3, got_further=True)) == "requeue"
    assert decide(replace(CRASH, restarts=3, got_further=True, may_requeue=False)) == "end"


def test_crash_that_comes_again_and_again_ends_though_training_gets_further_each_time() -> None:
    # A restart is counted anew whenever there is a newer checkpoint.
    crash = replace(CRASH, restarts=0, got_further=True)
    assert [decide(replace(crash, restarts_lately=n)) for n in (5, 6, 9)] == ["restart", "end", "end"]
    assert is_endless(replace(crash, restarts_lately=6))
    one = replace(crash, restarts_allowed=1)
    assert [decide(replace(one, restarts_lately=n)) for n in (1, 2)] == ["restart", "end"]


def test_number_of_earlier_restarts_does_not_matter_where_none_is_allowed() -> None:
    assert decide(replace(CRASH, restarts_allowed=0, got_further=True)) == "requeue"


@pytest.mark.parametrize("kind", ["user", "world", "difference", "gpu"])
def test_crash_that_would_come_again_at_once_ends(kind: str) -> None:
    assert decide(replace(CRASH, kind=kind)) == "end"
    assert decide(replace(CRASH, kind=kind, warned=True)) == "end"


def test_announced_end_requeues_where_that_is_allowed_and_else_ends() -> None:
    assert decide(replace(INTERRUPTED, warned=True)) == "requeue"
    assert decide(replace(CRASH, warned=True)) == "requeue"
    assert decide(replace(INTERRUPTED, warned=True, may_requeue=False)) == "end"


def test_terminated_job_is_not_requeued_though_its_end_was_announced_before() -> None:
    assert decide(replace(INTERRUPTED, warned=True, terminated=True)) == "end"


def test_terminated_job_does_not_restart_ranks_that_crashed_meanwhile() -> None:
    assert decide(replace(CRASH, terminated=True)) == "end"


def test_interruption_by_hand_ends() -> None:
    assert decide(INTERRUPTED) == "end"


def test_pause_doubles_with_each_restart_up_to_a_limit() -> None:
    assert [pause_seconds(n) for n in (0, 1, 2, 3, 9)] == [0.0, 1.0, 2.0, 4.0, 30.0]


def test_end_without_its_last_checkpoint_is_not_trained_for_again_unless_the_job_goes_back_into_the_queue() -> None:
    unwritten = replace(CRASH, outcome=Outcome("failed", "checkpoint", ""), got_further=True)
    assert decide(unwritten) == "end"
    assert decide(replace(unwritten, warned=True)) == "requeue"


@pytest.mark.parametrize("reason", ["removed", "lease"])
def test_run_that_is_gone_or_somebody_elses_is_left(reason: str) -> None:
    assert decide(replace(CRASH, outcome=Outcome("failed", reason, ""), warned=True)) == "end"
