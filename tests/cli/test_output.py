"""Output that is closed or full: a line at most, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from srlhpc.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PROGRAM = "from srlhpc.cli.main import main; main()"
PATHS = os.environ | {"PYTHONPATH": str(ROOT)}
FULL = "srlhpc: standard output cannot be written: No space left on device"


def shell(arguments: str, redirections: str, folder: Path) -> tuple[int, str]:
    """Exit code and what is still said."""
    command = f"{sys.executable} -c '{PROGRAM}' {arguments} {redirections}"
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=PATHS, stdout=-1, stderr=-2, text=True)
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize(
    ("arguments", "redirections", "code", "said"),
    [
        ("spec --schema", ">&-", 0, ""),
        ("spec --schema", ">/dev/full", 1, FULL),
        ("spec --schema", ">/dev/full 2>&-", 1, ""),
        ("status", ">&- 2>&- <&-", 0, ""),
        ("status", "2>/dev/full", 0, ""),
        ("--version", ">/dev/full", 1, FULL),
    ],
)
def test_closed_or_full_output_gives_a_line_at_most(
    tmp_path: Path, arguments: str, redirections: str, code: int, said: str
) -> None:
    assert shell(arguments, redirections, tmp_path) == (code, said)


def test_every_command_says_a_line_where_output_is_full(tmp_path: Path) -> None:
    # In copies of one process, which has loaded all there is to load.
    program = f"""
import os, sys
from srlhpc.cli.main import main
for name in {list(COMMANDS)}:
    if os.fork() == 0:
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        sys.argv[1:] = [name, "--help"]
        main()
    print(name, os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=PATHS | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == [f"{name} 1" for name in COMMANDS]
    assert done.stderr.splitlines() == [FULL] * len(COMMANDS)


def test_output_of_an_environment_that_cannot_be_written_ends_no_run(tmp_path: Path) -> None:
    program = (
        "from srlhpc.cli.output import forgive_output, prepare_output; prepare_output(); forgive_output(); "
        "import sys; print('hello', flush=True); print('there', file=sys.stderr)"
    )
    done = subprocess.run(
        ["sh", "-c", f'{sys.executable} -c "{program}" >/dev/full'],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "there\n")


def test_letters_that_the_terminal_does_not_know_are_escaped(tmp_path: Path) -> None:
    code, said = shell("status größe", "", tmp_path)
    assert code == 2
    assert "größe" in said
    done = subprocess.run(
        [sys.executable, "-c", "from srlhpc.cli.output import prepare_output; prepare_output(); print('1 · 2')"],
        env=PATHS | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "1 \\xb7 2\n")
