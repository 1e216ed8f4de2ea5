"""Times and numbers in slurm.conf that can end a run, or a part of it, and when their values hurt. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from srlhpc.doctor.findings import Finding, fault, ok, warning
from srlhpc.launch.grace_period import END_SECONDS

LIMITS = "limits"
_KILL_WAIT_SECONDS = 30
"""Slurm's own default."""
_INACTIVE_SECONDS = 120
_STEPS = 100
"""A job takes a step for each start of its ranks, and one more for each start that was cut off."""


def limit_findings(settings: Mapping[str, str]) -> Iterator[Finding]:
    """A finding for each value that hurts or would hurt elsewhere; one that says so, if none does.

    Args:
        settings: of `scontrol show config`.
    """
    found = [*_wait_time(settings), *_inactive_limit(settings), *_kill_wait(settings), *_step_count(settings)]
    yield from found or [ok(LIMITS, "WaitTime, InactiveLimit, KillWait and MaxStepCount leave runs alone")]


def _wait_time(settings: Mapping[str, str]) -> Iterator[Finding]:
    if seconds := _number(settings, "WaitTime"):
        yield ok(
            LIMITS,
            f"WaitTime={seconds} s would end all ranks so long after the first one has left; runs override it "
            "(srun --wait=0)",
        )


def _inactive_limit(settings: Mapping[str, str]) -> Iterator[Finding]:
    seconds = _number(settings, "InactiveLimit")
    if seconds and seconds < _INACTIVE_SECONDS:
        yield warning(
            LIMITS,
            f"InactiveLimit={seconds} s ends an allocation whose salloc or srun does not answer for so long",
            "jobs of srlhpc submit are batch jobs, which are exempt; do not leave srlhpc run in a terminal of salloc "
            "that may be suspended",
        )


def _kill_wait(settings: Mapping[str, str]) -> Iterator[Finding]:
    seconds = _number(settings, "KillWait")
    if seconds is not None and seconds < _KILL_WAIT_SECONDS:
        yield warning(
            LIMITS,
            f"KillWait={seconds} s is all that scancel and a time limit leave for a checkpoint; the foreman would wait "
            f"{END_SECONDS:.0f} s",
            f"end runs by srlhpc cancel, which does not depend on it; the administrator can set {_KILL_WAIT_SECONDS} s",
        )


def _step_count(settings: Mapping[str, str]) -> Iterator[Finding]:
    steps = _number(settings, "MaxStepCount")
    if steps is None or steps >= _STEPS:
        return
    found = (
        f"MaxStepCount={steps}: a job takes a step for each start of its ranks, and one more for each that was cut off"
    )
    if steps < 2:
        yield fault(LIMITS, found, "ask the administrator for Slurm's default, 40000")
    else:
        yield warning(
            LIMITS, found, "lower restarts_in_place in the profile, or ask the administrator for the default, 40000"
        )


def _number(settings: Mapping[str, str], name: str) -> int | None:
    """A value such as `30 sec`; None where it is not set or no number."""
    match = re.match(r"\d+", settings.get(name, ""))
    return int(match[0]) if match else None
