"""Runs of other users: a line, and no traceback."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from srlhpc.cli.main import COMMANDS, MODULES, run_command_line
from tests.launch.written_runs import written_run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
NOBODY = 65534
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """Runs a command as another user; gives exit code, output, error."""
    # All that commands load, while this process may still read it.
    for name in COMMANDS:
        importlib.import_module(f"srlhpc.cli.{MODULES.get(name, name)}")
    for name in ("specs.load", "launch.attempt", "launch.foreman", "launch.preparation", "runs.checkpoint_fit"):
        importlib.import_module(f"srlhpc.{name}")
    written_run(tmp_path, "open")
    closed = written_run(tmp_path, "closed")
    closed.folder.chmod(0o700)
    half = written_run(tmp_path, "half")
    half.attempts.chmod(0o700)
    files = written_run(tmp_path, "files")
    files.run.chmod(0o600)
    (tmp_path / "no-run").mkdir(mode=0o700)
    above = [folder for folder in tmp_path.parents if folder.stat().st_mode & 0o055 != 0o055]
    modes = {folder: folder.stat().st_mode for folder in above}
    for folder in above:
        folder.chmod(modes[folder] | 0o055)
    tmp_path.chmod(0o755)

    def run(*arguments: str) -> tuple[int, str, str]:
        os.seteuid(NOBODY)
        try:
            code = run_command_line([*arguments, "--root", str(tmp_path)])
        finally:
            os.seteuid(0)
        said = capsys.readouterr()
        return code, said.out, said.err

    yield run
    for folder, mode in modes.items():
        folder.chmod(mode)


def test_status_shows_closed_runs_in_a_line_each(call: Call, tmp_path: Path) -> None:
    code, out, err = call("status")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if "/3" in line] == ["open"]
    closed = {line.partition(":")[0] for line in err.splitlines() if "belongs to user root" in line}
    assert {Path(line).name for line in closed} == {"closed", "half", "files", "no-run"}
    assert closed == {str(tmp_path / name) for name in ("closed", "half", "files", "no-run")}


@pytest.mark.parametrize("command", ["status", "why", "logs", "cancel", "resume"])
@pytest.mark.parametrize("name", ["closed", "half", "files"])
def test_closed_run_is_named_with_its_owner(call: Call, command: str, name: str) -> None:
    code, _, err = call(command, name)
    assert code == 2
    assert "belongs to user root, and you may not look into it; ask for read permission" in err


def test_latest_is_the_newest_run_that_can_be_read(call: Call) -> None:
    assert call("status", "latest")[1].splitlines()[1].split()[0] == "open"


def test_run_of_another_names_the_file_that_cannot_be_written(call: Call) -> None:
    code, _, err = call("resume", "open")
    assert (code, "Permission denied" in err, "Traceback" in err) == (2, True, False)
