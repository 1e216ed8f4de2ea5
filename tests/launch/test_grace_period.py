"""The announced end of a job: a checkpoint is asked for, waited for, and the end gets its name."""

from __future__ import annotations

import errno
import io
import time
from pathlib import Path

import pytest

from srlhpc.data.atomic import write_json
from srlhpc.launch.grace_period import GracePeriod
from srlhpc.launch.signals import JobSignals
from srlhpc.runs.outcome import Outcome
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.progress import ProgressLine
from tests.failing_disk import FailingDisk

STOPPED = Outcome("interrupted", "signal", "stopped on request")


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptPaths:
    return RunPaths(tmp_path).new_attempt()


@pytest.fixture
def signals() -> JobSignals:
    return JobSignals()


def grace_period(
    attempt: AttemptPaths,
    signals: JobSignals,
    *,
    lead: float = 40.0,
    limit: float = 3600.0,
    cancelled: bool = False,
    minutes_now: int | None = None,
) -> GracePeriod:
    return GracePeriod(
        RunPaths(attempt.folder.parent.parent),
        "17",
        signals,
        lead_seconds=lead,
        limit_seconds=limit,
        is_cancelled=lambda: cancelled,
        progress=ProgressLine(io.StringIO()),
        ask_minutes=lambda: minutes_now,
    )


def ago(seconds: float) -> float:
    return time.monotonic() - seconds


def test_nobody_is_asked_without_a_signal(attempt: AttemptPaths, signals: JobSignals) -> None:
    end = grace_period(attempt, signals)
    assert end.overdue_outcome(attempt) is None
    assert not end.is_asked_for(attempt)
    assert not attempt.stop.exists()


def test_end_that_was_asked_for_or_announced_has_begun_whatever_the_file_system_does(
    attempt: AttemptPaths, signals: JobSignals, failing_disk: FailingDisk
) -> None:
    end = grace_period(attempt, signals)
    failing_disk.fail("outcome.json", errno.ESTALE, times=1)
    assert not end.has_begun(attempt)
    attempt.outcome.touch()
    assert end.has_begun(attempt)
    attempt.outcome.unlink()
    signals.announced_at = ago(0.0)
    end.overdue_outcome(attempt)
    assert end.has_begun(attempt)


def test_warning_asks_for_one_checkpoint(attempt: AttemptPaths, signals: JobSignals) -> None:
    end = grace_period(attempt, signals)
    signals.announced_at = ago(0.0)
    assert end.overdue_outcome(attempt) is None
    attempt.stop.unlink()
    assert end.overdue_outcome(attempt) is None
    assert not attempt.stop.exists()


def test_term_at_the_ranks_alone_is_a_warning(attempt: AttemptPaths, signals: JobSignals) -> None:
    attempt.terminated.touch()
    end = grace_period(attempt, signals)
    assert end.overdue_outcome(attempt) is None
    assert attempt.stop.exists()
    assert end.named(attempt, STOPPED).reason == "preemption"


def test_ranks_without_a_checkpoint_must_go_after_the_lead_time(attempt: AttemptPaths, signals: JobSignals) -> None:
    end = grace_period(attempt, signals)
    signals.announced_at = ago(5.0)
    assert end.overdue_outcome(attempt) is None
    signals.announced_at = ago(36.0)
    outcome = end.overdue_outcome(attempt)
    assert outcome is not None
    assert "no checkpoint within 35 s" in outcome.message


def test_ranks_must_go_before_the_kill_after_term_however_long_the_lead_time_is(
    attempt: AttemptPaths, signals: JobSignals
) -> None:
    end = grace_period(attempt, signals, lead=600.0)
    signals.terminated_at = ago(26.0)
    assert end.overdue_outcome(attempt) is not None


@pytest.mark.parametrize(("of_attempt", "state"), [(1, "failed"), (0, "interrupted")])
def test_ranks_that_must_go_while_their_last_checkpoint_waits_for_room_have_failed(
    attempt: AttemptPaths, signals: JobSignals, of_attempt: int, state: str
) -> None:
    status = RunPaths(attempt.folder.parent.parent).status
    write_json(status, {"attempt": of_attempt, "waits": "the last checkpoint waits: the disk is full"})
    signals.terminated_at = ago(26.0)
    outcome = grace_period(attempt, signals).overdue_outcome(attempt)
    assert outcome is not None
    assert (outcome.state, "the disk is full" in outcome.message) == (state, state == "failed")


def test_attempt_that_has_written_its_outcome_is_left_alone(attempt: AttemptPaths, signals: JobSignals) -> None:
    signals.announced_at = ago(1000.0)
    attempt.outcome.touch()
    assert grace_period(attempt, signals).overdue_outcome(attempt) is None


def test_warning_near_the_time_limit_is_that_limit_and_any_other_a_preemption(
    attempt: AttemptPaths, signals: JobSignals
) -> None:
    signals.announced_at = ago(0.0)
    assert grace_period(attempt, signals, limit=90.0).named(attempt, STOPPED).reason == "time_limit"
    assert grace_period(attempt, signals, limit=900.0).named(attempt, STOPPED).reason == "preemption"


@pytest.mark.parametrize(
    ("minutes_now", "reason"), [(1, "time_limit"), (60, "preemption"), (59, "preemption"), (None, "preemption")]
)
def test_warning_after_the_time_limit_was_shortened_is_reported_as_that(
    attempt: AttemptPaths, signals: JobSignals, minutes_now: int | None, reason: str
) -> None:
    signals.announced_at = ago(0.0)
    named = grace_period(attempt, signals, minutes_now=minutes_now).named(attempt, STOPPED)
    assert named.reason == reason
    said = "stopped on request; the time limit of job 17 was shortened from 01:00:00 to 00:01:00"
    assert named.message == (said if reason == "time_limit" else "stopped on request")


def test_term_after_a_time_limit_below_the_time_run_is_reported_as_that(
    attempt: AttemptPaths, signals: JobSignals
) -> None:
    signals.terminated_at = ago(0.0)
    attempt.terminated.touch()
    message = grace_period(attempt, signals, minutes_now=1).named(attempt, STOPPED).message
    assert message.startswith("Slurm ended job 17; the time limit of job 17 was shortened from 01:00:00 to 00:01:00; ")


def test_who_else_got_term_tells_a_cancelled_job_from_one_that_slurm_ends(
    attempt: AttemptPaths, signals: JobSignals
) -> None:
    signals.terminated_at = ago(0.0)
    end = grace_period(attempt, signals)
    assert end.named(attempt, STOPPED).reason == "cancelled"
    attempt.terminated.touch()
    assert end.named(attempt, STOPPED).reason == "terminated"


def test_outcome_that_is_no_interruption_keeps_its_name(attempt: AttemptPaths, signals: JobSignals) -> None:
    signals.announced_at = ago(0.0)
    finished = Outcome("finished", "steps", "")
    assert grace_period(attempt, signals).named(attempt, finished) is finished


@pytest.mark.parametrize(("cancelled", "seconds", "ends"), [(False, 26, True), (True, 26, False), (True, 36, True)])
def test_term_leaves_25_seconds_before_slurm_kills_but_the_lead_time_for_srlhpc_cancel(
    attempt: AttemptPaths, signals: JobSignals, cancelled: bool, seconds: float, ends: bool
) -> None:
    signals.terminated_at = ago(seconds)
    found = grace_period(attempt, signals, lead=40.0, cancelled=cancelled).overdue_outcome(attempt)
    assert (found is not None) == ends
