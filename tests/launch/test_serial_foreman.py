"""The foreman of a serial run."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import read_json, write_json
from srlhpc.launch.serial_foreman import SerialForeman
from srlhpc.runs.creation import create_run
from srlhpc.runs.failures import failures
from srlhpc.runs.lease import Lease
from srlhpc.runs.paths import AttemptPaths, RunPaths


def run(root: Path, train: Callable[[RunPaths, AttemptPaths], object]) -> tuple[int, dict[str, Any]]:
    """Exit code and end."""
    paths = create_run(root, "a", "a", "seed: 1\n", 1, [])
    with Lease(paths.lease).held(1) as lease:
        outcome = SerialForeman(paths, paths.new_attempt(), lease, train, out=io.StringIO()).run()
    return outcome.exit_code, read_json(paths.attempt(1).end) or {}


def test_outcome_of_training_is_the_end(tmp_path: Path) -> None:
    def train(_paths: RunPaths, attempt: AttemptPaths) -> None:
        write_json(attempt.outcome, {"state": "finished", "reason": "updates", "message": ""})

    code, end = run(tmp_path, train)
    assert (code, end["state"], end["reason"]) == (0, "finished", "updates")


def test_ctrl_c_asks_training_to_stop_by_the_mailbox(tmp_path: Path) -> None:
    def train(_paths: RunPaths, attempt: AttemptPaths) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert attempt.stop.exists()
        write_json(attempt.outcome, {"state": "interrupted", "reason": "signal", "message": ""})

    assert run(tmp_path, train)[0] == 130


def test_second_ctrl_c_ends_training_at_once(tmp_path: Path) -> None:
    def train(_paths: RunPaths, _attempt: AttemptPaths) -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("went on")

    code, end = run(tmp_path, train)
    assert (code, end["state"]) == (130, "interrupted")


def test_second_ctrl_c_while_the_last_checkpoint_waits_for_room_is_a_failure(tmp_path: Path) -> None:
    def train(paths: RunPaths, _attempt: AttemptPaths) -> None:
        write_json(paths.status, {"attempt": 1, "waits": "the last checkpoint waits: the disk is full"})
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    code, end = run(tmp_path, train)
    assert (code, end["state"], end["reason"]) == (1, "failed", "checkpoint")
    assert "the disk is full" in end["message"]


def test_error_of_training_is_the_end_with_its_traceback(tmp_path: Path) -> None:
    def train(_paths: RunPaths, _attempt: AttemptPaths) -> None:
        raise RuntimeError("broken environment")

    code, end = run(tmp_path, train)
    assert (code, end["state"], end["message"]) == (1, "failed", "RuntimeError: broken environment")
    assert not RunPaths(tmp_path / "a").lease.exists()
    assert "broken environment" in failures(RunPaths(tmp_path / "a").attempt(1))[0].traceback
