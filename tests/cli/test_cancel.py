"""`srlhpc cancel` where the run's folder cannot be written."""

from __future__ import annotations

import errno
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from srlhpc.cli.main import run_command_line
from srlhpc.data.atomic import read_json, write_json
from srlhpc.runs.processes import ProcessIdentity
from tests.launch.written_runs import hold, written_run

Cancel = Callable[[], tuple[int, str]]


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def cancel(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cancel:
    """Cancels the run `mine` on a full disk; gives exit code and what was said."""

    def run() -> tuple[int, str]:
        # From now on: the run itself was made before.
        monkeypatch.setattr("srlhpc.cli.cancel.write_json", full)
        monkeypatch.setattr("srlhpc.data.mailbox.post", full)
        return run_command_line(["cancel", "mine", "--root", str(tmp_path)]), capsys.readouterr().err

    return run


def slurm_with(state: str, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Every command line that a Slurm whose job 7 is in that state gets from now on."""
    asked: list[list[str]] = []

    def slurm(arguments: Sequence[str], *_: object, **__: object) -> SimpleNamespace:
        asked.append(list(arguments))
        return SimpleNamespace(stdout=f"7|{state}|9:00|cpu1|N/A\n" if arguments[0] == "squeue" else "")

    for module in ("srlhpc.slurm.jobs", "srlhpc.cli.cancel"):
        monkeypatch.setattr(f"{module}.run_slurm", slurm)
    return asked


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        ("RUNNING|None", ["scancel", "--batch", "--signal=TERM", "7"]),
        ("PENDING|Priority", ["scancel", "7"]),
        ("PENDING|BeginTime", ["scancel", "7"]),
    ],
)
def test_cancel_on_a_full_disk_reaches_slurm(
    tmp_path: Path, cancel: Cancel, monkeypatch: pytest.MonkeyPatch, state: str, wanted: list[str]
) -> None:
    asked = slurm_with(state, monkeypatch)
    paths = written_run(tmp_path, "mine")
    write_json(paths.slurm, {"jobs": [{"id": "7", "submitted": 0.0}]})
    code, said = cancel()
    assert (code, wanted in asked) == (0, True)
    assert f"warning: {paths.slurm}: cannot be written: No space left on device" in said


def test_cancelled_job_is_marked_in_the_room_of_the_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm_with("PENDING|Priority", monkeypatch)
    paths = written_run(tmp_path, "mine")
    write_json(paths.slurm, {"jobs": [{"id": "7", "submitted": 0.0}]})
    paths.reserve.keep()

    def write(path: Path, content: dict[str, Any]) -> None:
        if paths.reserve.path.exists():
            full()
        write_json(path, content)

    monkeypatch.setattr("srlhpc.cli.cancel.write_json", write)
    assert run_command_line(["cancel", "mine", "--root", str(tmp_path)]) == 0
    (job,) = (read_json(paths.slurm) or {})["jobs"]
    assert "cancelled" in job


def test_cancel_on_a_full_disk_signals_the_foreman(tmp_path: Path, cancel: Cancel) -> None:
    paths = written_run(tmp_path, "mine")
    hold(paths)
    # A shell that starts its jobs in the background has them ignore SIGINT, and `sleep` would inherit that.
    command = ["env", "--default-signal=INT", "sh", "-c", "echo; exec sleep 600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as foreman:
        try:
            # Until `env` has run, an interrupt would be ignored.
            assert foreman.stdout is not None
            assert foreman.stdout.readline()
            identity = ProcessIdentity.of(foreman.pid)
            assert identity is not None
            write_json(paths.lease, (read_json(paths.lease) or {}) | identity.to_json())
            code, said = cancel()
            assert foreman.wait(timeout=60) == -signal.SIGINT
        finally:
            foreman.kill()
    assert (code, "cannot be written" in said, "will write a checkpoint and end" in said) == (0, True, True)


def test_cancel_on_a_full_disk_says_how_to_end_a_run_elsewhere(
    tmp_path: Path, cancel: Cancel, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = written_run(tmp_path, "mine")
    hold(paths)
    write_json(paths.lease, (read_json(paths.lease) or {}) | {"host": "elsewhere", "pid": 99, "job": None})
    monkeypatch.setattr("os.kill", lambda *_: pytest.fail("a process of this host is not meant"))
    code, said = cancel()
    assert (code, "on elsewhere, or there: kill -INT 99" in said) == (3, True)
