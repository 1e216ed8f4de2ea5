"""The command line as a whole: exit codes, what is loaded, help."""

from __future__ import annotations

import importlib
import subprocess
import sys

import click
import pytest

from srlhpc.cli import main
from srlhpc.cli.main import COMMANDS, cli, run_command_line
from srlhpc.errors import ClusterError, UserError


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_own_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([name, "--help"]) == 0
    assert f"Usage: srlhpc {name}" in capsys.readouterr().out


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--help"]) == 0
    assert set(COMMANDS) <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("error", "code"), [(UserError("mind the gap"), 2), (ClusterError("mind the gap"), 3), (KeyboardInterrupt(), 130)]
)
def test_failed_command_has_its_exit_code(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command("spec")
    def failing() -> None:
        raise error

    monkeypatch.setattr(cli, "get_command", lambda *_: failing)
    assert run_command_line(["spec"]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert ("srlhpc: mind the gap" in said.err) == (code != 130)


def test_name_that_is_too_long_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["record", "run", "--episodes", "1", "--out", "x" * 300]) == 2
    assert "x: File name too long; choose a shorter one" in capsys.readouterr().err


def test_bug_of_a_command_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command("spec")
    def failing() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "get_command", lambda *_: failing)
    with pytest.raises(ZeroDivisionError):
        run_command_line(["spec"])


def test_misspelt_command_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["stats"]) == 2
    assert "no command 'stats'; did you mean 'status'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["status", "logs", "why", "cancel", "checkpoint", "run", "resume", "plot"])
def test_finding_a_command_loads_nothing_heavy(name: str) -> None:
    heavy = ["torch", "mpi4py", "pydantic", "numpy", "h5py", "gymnasium", "matplotlib"]
    program = (
        f"import sys; from srlhpc.cli.main import run_command_line; run_command_line(['{name}', '--help']); "
        f"print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_reader_that_leaves_causes_no_traceback() -> None:
    program = "from srlhpc.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "spec", "--schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""


def test_every_command_offers_command() -> None:
    for name in COMMANDS:
        module = importlib.import_module(f"srlhpc.cli.{main.MODULES.get(name, name)}")
        assert isinstance(module.command, click.Command)
