"""Starts `fake_run.py` for tests, waits for what it should do, and cleans up after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import read_json
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.processes import kill_processes_of, processes_of
from srlhpc.runs.shared_memory import remove_leftovers

PATIENCE_SECONDS = 180.0
"""For what must happen; only a fault lets it pass."""
LABELS = ("coordinator-0", "actor-0", "trainer-default-0")


class FakeRun:
    """A foreman in a process of its own, over fake ranks."""

    def __init__(self, root: Path, way: str, labels: tuple[str, ...] = LABELS) -> None:
        self.paths = RunPaths(root / "fake")
        self.attempt: AttemptPaths = self.paths.attempt(1)
        program = str(Path(__file__).with_name("fake_run.py"))
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        self.process = subprocess.Popen(
            [sys.executable, program, str(root), way, *labels], stderr=subprocess.PIPE, text=True, env=environment
        )

    def wait_until_up(self) -> None:
        wait_for(lambda: (read_json(self.paths.status) or {}).get("phase") == "training")

    def rank_pid(self, rank: int) -> int:
        path = self.attempt.folder / f"pid-{rank}"
        wait_for(lambda: path.exists() and path.read_text())
        return int(path.read_text())

    def pids(self) -> list[int]:
        """Of everything that the foreman started."""
        return processes_of(self.attempt.folder)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait_until_said(self, text: str) -> None:
        """Reads standard error until a line has the text."""
        assert self.process.stderr
        said: list[str] = []
        patience = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        patience.start()
        try:
            while not said or text not in said[-1]:
                said.append(next(self.process.stderr, ""))
                assert said[-1], f"'{text}' was not said, but {said}"
        finally:
            patience.cancel()

    def wait(self) -> tuple[int, str]:
        """Exit code and standard error."""
        _, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, err

    @property
    def end(self) -> dict[str, Any]:
        return read_json(self.attempt.end) or {}


@contextmanager
def fake_run(root: Path, way: str, labels: tuple[str, ...] = LABELS) -> Iterator[FakeRun]:
    run = FakeRun(root, way, labels)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.communicate()
        kill_processes_of(run.attempt.folder)
        remove_leftovers(run.attempt)


def wait_for(happened: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Waits for another process.

    Raises:
        TimeoutError: it did not happen.
    """
    limit = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > limit:
            raise TimeoutError
        time.sleep(0.01)


def kill(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
