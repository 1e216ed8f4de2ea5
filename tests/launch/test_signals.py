"""Signals to the foreman: noted, and not lost while it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from srlhpc.launch import signals as module
from srlhpc.launch.signals import ENDS, WARNINGS, JobSignals, Signals
from srlhpc.runs.paths import AttemptPaths


@pytest.fixture
def signals() -> Iterator[JobSignals]:
    before = {number: signal.getsignal(number) for number in (*WARNINGS, *ENDS, signal.SIGCONT)}
    yield JobSignals()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_warning_is_noted_in_place_of_the_handler_before_it(signals: JobSignals) -> None:
    asked = []
    signal.signal(signal.SIGUSR2, lambda number, _frame: asked.append(number))
    signals.catch()
    os.kill(os.getpid(), signal.SIGUSR2)
    assert (signals.announced_at is not None, signals.terminated_at, asked) == (True, None, [])


@pytest.mark.parametrize(("number", "counted"), [(signal.SIGTERM, 1), (signal.SIGHUP, 1), (signal.SIGINT, 2)])
def test_second_signal_of_one_request_does_not_end_at_once(
    number: int, counted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    (tmp_path / "control").mkdir()
    with Signals(AttemptPaths(tmp_path), raises=False).caught() as caught:
        os.kill(os.getpid(), number)
        # As `timeout` does: first the process, then its group.
        os.kill(os.getpid(), number)
        assert caught.count == counted
        now += 2.0
        os.kill(os.getpid(), number)
        assert caught.count == counted + 1


def test_job_is_being_ended_once_term_is_noted(signals: JobSignals) -> None:
    signals.catch()
    os.kill(os.getpid(), signal.SIGTERM)
    assert signals.terminated_at is not None


def test_warning_that_came_during_the_set_up_is_noted(signals: JobSignals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRLHPC_WARNED", "1")
    signals.catch()
    assert signals.announced_at is not None


def test_signal_to_a_foreman_that_still_loads_is_held_and_noted() -> None:
    program = (
        "import os, signal, sys\n"
        "sys.argv = ['held_signals', 'loading_module']\n"
        "import srlhpc.launch.hold_signals as held, types, runpy\n"
        "def run_module(*_, **__):\n"
        "    os.kill(os.getpid(), signal.SIGUSR2)\n"
        "    from srlhpc.launch.signals import JobSignals\n"
        "    noted = JobSignals(); noted.catch(); print(noted.announced_at is not None)\n"
        "runpy.run_module = run_module\n"
        "held.main()\n"
    )
    ignored = f"trap '' USR1 USR2 TERM; exec {sys.executable} -c \"$0\""
    done = subprocess.run(["sh", "-c", ignored, program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr
