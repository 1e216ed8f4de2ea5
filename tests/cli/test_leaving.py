"""The end of a command whose environment has left threads, exit hooks or timers in its process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.comm.launching import ROOT
from tests.launch.making_runs import settings

HASTE = "from srlhpc.cli import leaving; leaving.LEAVE_SECONDS = 0.1; "
MAIN = HASTE + "from srlhpc.cli import main; "
LEAVE = (
    HASTE + "import atexit, os, signal, threading; from concurrent.futures import ThreadPoolExecutor; "
    "stays = threading.Event().wait; {deed}; print('all is said'); leaving.leave(3)"
)


def python(program: str, *arguments: str, folder: Path | None = None) -> tuple[int, str, str]:
    """Exit code, output, error."""
    variables = os.environ | {"PYTHONPATH": str(ROOT), "SRLHPC_ROOT": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=variables, cwd=folder, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("deed", "told"),
    [
        ("threading.Thread(target=stays, name='viewer').start()", "thread 'viewer' of the environment"),
        ("ThreadPoolExecutor(thread_name_prefix='pool').submit(stays)", "thread 'pool_0' of the environment"),
        ("atexit.register(stays)", "an exit hook (atexit)"),
    ],
    ids=["thread", "pool", "exit hook"],
)
def test_what_does_not_end_is_named_and_left(deed: str, told: str) -> None:
    code, out, err = python(LEAVE.format(deed=deed))
    assert (code, out) == (3, "all is said\n")
    assert told in err


@pytest.mark.parametrize("name", ["SIGALRM", "SIGVTALRM", "SIGPROF"])
def test_timer_that_rings_after_the_end_changes_no_exit_code(name: str) -> None:
    rings = f"atexit.register(os.kill, os.getpid(), signal.{name})"
    assert python(LEAVE.format(deed=rings))[:2] == (3, "all is said\n")


def test_debugger_goes_on_after_the_end() -> None:
    under_debugger = (
        "import sys; sys.settrace(lambda *_: None); atexit.register(lambda: print(threading.active_count()))"
    )
    assert python(LEAVE.format(deed=under_debugger)) == (3, "all is said\n1\n", "")


def test_bug_is_shown_and_ends_too() -> None:
    thread = "import threading; threading.Thread(target=threading.Event().wait, name='viewer').start(); "
    code, _, err = python(MAIN + thread + "main.run_command_line = lambda: [][0]; main.main()")
    assert code == 1
    assert "IndexError: list index out of range" in err
    assert "'viewer'" in err


def test_serial_run_and_eval_end_whatever_threads_the_environment_leaves(tmp_path: Path) -> None:
    job = settings(
        {"factory": "tests.unruly_environment", "deed": "leaves threads", "at": "reset"}, stop={"updates": 1}
    )
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    program = MAIN + "main.main()"
    code, _, err = python(program, "run", "job.yaml", "--serial", "--name", "mine", folder=tmp_path)
    assert code == 0, err
    assert "finished (updates)" in err
    assert "'viewer'" in err
    code, out, err = python(program, "eval", "mine", "--episodes", "1", folder=tmp_path)
    assert code == 0, err
    assert "return_mean" in out
    assert "'viewer'" in err
