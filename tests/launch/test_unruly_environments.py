"""Serial runs with environments that leave, fail, start processes and set handlers: as ranks would take it."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.atomic import read_json
from srlhpc.data.checkpoint_names import checkpoint_files
from srlhpc.launch.serial_foreman import SerialForeman
from srlhpc.ranks.guarded_signals import guarded
from srlhpc.ranks.serial import run_serial
from srlhpc.roles.acting import closing
from srlhpc.runs.failures import failures
from srlhpc.runs.lease import Lease
from srlhpc.runs.paths import AttemptPaths
from srlhpc.runs.processes import processes_of
from srlhpc.specs.child_processes import children
from tests.launch.making_runs import make_attempt, make_run, settings


def run(root: Path, **unruly: Any) -> tuple[int, AttemptPaths]:
    """Exit code and attempt of a serial run; it ends after three updates if nothing else ends it."""
    environment = {"factory": "tests.unruly_environment", **unruly}
    stop = {"updates": 1000 if unruly.get("interrupts_at") else 3}
    job = settings(environment, stop=stop)
    paths = make_run(root, job)
    attempt, _ = make_attempt(paths, job)
    with Lease(paths.lease).held(1) as lease:
        outcome = SerialForeman(paths, attempt, lease, run_serial, out=io.StringIO()).run()
    return outcome.exit_code, attempt


@pytest.mark.parametrize(
    ("deed", "at"),
    [("exits", "step"), ("exits", "reset"), ("exits", "build"), ("interrupts itself", "step"), ("raises", "step")],
)
def test_environment_that_leaves_is_a_failure_with_its_cause_and_is_closed(tmp_path: Path, deed: str, at: str) -> None:
    diary = tmp_path / "diary"
    code, attempt = run(tmp_path, deed=deed, at=at, diary=str(diary))
    assert (code, (read_json(attempt.end) or {})["state"]) == (1, "failed")
    cause = {"exits": "it called sys.exit(0)", "raises": "IndexError", "interrupts itself": "KeyboardInterrupt"}[deed]
    assert cause in failures(attempt)[0].message
    if at != "build":
        # Both groups of the ring.
        assert diary.read_text() == "closed\n" * 2


@pytest.mark.parametrize("at", ["build", "reset", "step"])
@pytest.mark.parametrize(("deed", "cause"), [("is cancelled", "CancelledError"), ("panics", "PanicException: index")])
def test_what_is_no_exception_of_the_usual_kind_is_told_as_others_are(
    tmp_path: Path, deed: str, cause: str, at: str
) -> None:
    code, attempt = run(tmp_path, deed=deed, at=at)
    message = failures(attempt)[0].message
    assert (code, (read_json(attempt.end) or {})["reason"]) == (1, "environment")
    assert "environment tests.unruly_environment" in message
    assert "on rank 0 (actor-0)" in message
    assert ({"build": "cannot be built", "reset": "reset: ", "step": "step 1: "}[at]) in message
    assert cause in message


@pytest.mark.parametrize("deed", ["raises", "exits", "is cancelled"])
def test_close_that_fails_changes_no_end(tmp_path: Path, deed: str, caplog: pytest.LogCaptureFixture) -> None:
    code, _ = run(tmp_path, deed=deed, at="close")
    assert code == 0
    assert "its close() failed: " in caplog.text


def test_close_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(closing, "CLOSE_SECONDS", 0.05)

    class Hanging:
        def close(self) -> None:
            signal.pause()

    before = signal.getsignal(signal.SIGALRM)
    closing.close(Hanging(), "there")  # type: ignore[arg-type]
    assert caplog.messages == ["there: its close() did not end within 0.05 s"]
    assert signal.getsignal(signal.SIGALRM) == before


@pytest.mark.parametrize("deed", ["starts", "starts by another process", "clears its variables and starts"])
def test_processes_that_an_environment_leaves_are_killed(
    tmp_path: Path, deed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = children()
    with monkeypatch.context() as variables:
        # Whatever the environment does to it, the other tests have theirs again.
        for name, value in os.environ.items():
            variables.setenv(name, value)
        code, attempt = run(tmp_path, deed=deed, at="build")
    assert code == 0
    assert processes_of(attempt.folder) == []
    for pid in children() - before:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("deed", "at"),
    [
        ("ignores", "build"),
        ("ignores", "reset"),
        ("ignores", "step"),
        ("ignores by name", "step"),
        ("dies", "step"),
        ("handles", "step"),
        ("ignores in native code", "build"),
        ("ignores in native code", "reset"),
    ],
)
def test_ctrl_c_ends_with_a_checkpoint_whatever_the_environment_does_with_signals(
    tmp_path: Path, deed: str, at: str
) -> None:
    before = signal.getsignal(signal.SIGINT)
    code, attempt = run(tmp_path, deed=deed, at=at, interrupts_at=40)
    assert (code, (read_json(attempt.end) or {})["state"]) == (130, "interrupted")
    assert checkpoint_files(attempt.folder.parent.parent / "checkpoints")
    assert signal.getsignal(signal.SIGINT) is before


def test_handlers_of_a_forked_process_are_its_own(tmp_path: Path) -> None:
    with guarded({signal.SIGTERM: signal.SIG_IGN}):
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_handlers_that_are_guarded_seem_to_be_set_and_others_are() -> None:
    def other(_number: int, _frame: object) -> None: ...

    before = signal.getsignal(signal.SIGUSR1)
    with guarded({signal.SIGINT: signal.SIG_IGN}):
        assert signal.signal(signal.SIGINT, other) == signal.SIG_IGN
        assert signal.signal(signal.SIGINT, signal.SIG_DFL) == other
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        assert signal.signal(signal.SIGUSR1, other) == before
        assert signal.signal(signal.SIGUSR1, before) == other
        with pytest.raises(TypeError):
            signal.signal(signal.SIGINT, "no handler")  # type: ignore[arg-type]
