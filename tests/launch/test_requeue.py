"""Putting a job back into the queue, without a Slurm."""

from __future__ import annotations

from typing import Any

import pytest

from srlhpc.launch import requeue as module
from srlhpc.launch.requeue import refusal, requeue
from srlhpc.launch.signals import JobSignals
from srlhpc.slurm.commands import SlurmRefused, SlurmSilent
from srlhpc.specs.cluster import ClusterProfile

CLUSTER = ClusterProfile(requeues=2)


class Slurm:
    """What `scontrol requeue` was told, and the errors that it answers with."""

    def __init__(self) -> None:
        self.told: list[list[str]] = []
        self.errors: list[Exception] = []

    def run(self, arguments: list[str]) -> None:
        self.told.append(arguments)
        if self.errors:
            raise self.errors.pop(0)


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm()
    monkeypatch.setattr(module, "run_slurm", made.run)
    return made


def asked(signals: JobSignals, *states: str) -> Any:
    return requeue("17", signals, ask=lambda _job: list(states), sleep=lambda _seconds: None)


def test_running_job_is_requeued_unless_it_is_cancelled_meanwhile(slurm: Slurm) -> None:
    assert asked(JobSignals(), "RUNNING", "RUNNING") is None
    assert slurm.told == [["scontrol", "requeue", "incomplete", "17"]]


@pytest.mark.parametrize("states", [("CANCELLED",), ("RUNNING", "COMPLETING"), ()])
def test_job_that_is_being_ended_is_not_revived(slurm: Slurm, states: tuple[str, ...]) -> None:
    outcome = asked(JobSignals(), *states)
    assert (outcome.state, outcome.reason, slurm.told) == ("interrupted", "terminated", [])


def test_job_after_term_is_not_revived_although_slurm_calls_it_running(slurm: Slurm) -> None:
    signals = JobSignals()
    signals.terminated_at = 1.0
    assert asked(signals, "RUNNING").reason == "terminated"
    assert slurm.told == []


def test_silent_controller_is_asked_again(slurm: Slurm) -> None:
    answers: list[Exception | None] = [SlurmSilent("no answer"), SlurmSilent("no answer"), None]
    pauses: list[float] = []

    def ask(_job: str) -> list[str]:
        if (error := answers.pop(0)) is not None:
            raise error
        return ["RUNNING"]

    assert requeue("17", JobSignals(), ask=ask, sleep=pauses.append) is None
    assert (len(pauses), len(slurm.told)) == (2, 1)


def test_refused_requeue_fails_with_the_message_of_slurm(slurm: Slurm) -> None:
    slurm.errors.append(SlurmRefused("`scontrol requeue incomplete 17` failed: job may not be requeued", "refused"))
    outcome = asked(JobSignals(), "RUNNING")
    assert (outcome.state, outcome.reason) == ("failed", "requeue")
    assert "may not be requeued" in outcome.message


def test_requeues_beyond_those_allowed_are_refused() -> None:
    assert refusal("17", CLUSTER, {}) is None
    assert refusal("17", CLUSTER, {"SLURM_RESTART_COUNT": "1"}) is None
    assert "2 times" in (refusal("17", CLUSTER, {"SLURM_RESTART_COUNT": "2"}) or "")
