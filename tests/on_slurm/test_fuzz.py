"""Bad input for `srlhpc submit` against a real Slurm: refused with words that help, and nothing is left behind."""

from __future__ import annotations

import io
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from srlhpc.cli.main import run_command_line
from srlhpc.errors import ClusterError
from srlhpc.slurm.commands import run_slurm
from tests.on_slurm.bad_input import JOB, PROFILE, Bad, by_hand
from tests.on_slurm.mutations import spoilt_bytes, wrong_keys, wrong_values
from tests.on_slurm.runs_on_slurm import ROOT

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("lab"), pytest.mark.timeout(240)]

SEED = 20_261_128
HANG_SECONDS = 30
_REMEDY = re.compile(
    r"\b(ask|choose|correct|did you mean|give|indent|is it the right|is missing|must be|known|leave|lower|may have|name"
    r"|one of|quote|raise|requires|set|take|try|use|write)\b",
    re.I,
)


@dataclass(frozen=True)
class Said:
    """What the command did."""

    code: int
    out: str
    err: str
    left: list[str]
    """Files that were not there before, the empty folder of all runs aside."""


Submit = Callable[[Bad], Said]


@pytest.fixture
def submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submit]:
    """Submits in this process, each input in a folder of its own."""
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
    monkeypatch.setattr("srlhpc.runs.creation.code_version", lambda: {})
    before = signal.signal(signal.SIGALRM, _hangs)
    numbers = iter(range(10**6))

    def run(bad: Bad) -> Said:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        monkeypatch.chdir(folder)
        _write(bad, folder)
        there = set(folder.rglob("*"))
        # As Python's own standard error, which writes what is no UTF-8 in another way.
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(2))
        signal.alarm(HANG_SECONDS)
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = run_command_line(["submit", *bad.command, "--root", "runs", *bad.options])
        finally:
            signal.alarm(0)
        left = [str(path) for path in folder.rglob("*") if path not in there and path.name != "runs"]
        return Said(code, _text(out), _text(err), left)

    yield run
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def queue(lab: str) -> Iterator[Callable[[], set[str]]]:
    """Jobs that this test has submitted and not cancelled, ended ones too; they are cancelled afterwards."""
    first = _next_job()

    def new() -> set[str]:
        said = run_slurm(["squeue", "-h", "-t", "all", "-o", "%A %T %r"]).stdout.splitlines()
        jobs = [line.split() for line in said]
        # Slurm keeps a record of some that it has refused.
        return {
            job
            for job, state, reason in jobs
            if int(job) >= first and (state, reason) != ("FAILED", "BadConstraints") and state != "CANCELLED"
        }

    yield new
    for job in new():
        # The components of a heterogeneous job go with its first, and some have ended.
        with suppress(ClusterError):
            run_slurm(["scancel", job])


def test_good_input_from_the_harness_makes_a_job_and_its_run(submit: Submit, queue: Callable[[], set[str]]) -> None:
    said = submit(Bad("", options=("--name", "good", "--chain", "2")))
    assert said.code == 0, said.err
    assert len(queue()) >= 2
    assert any(path.endswith("good/slurm.json") for path in said.left)


@pytest.mark.parametrize(
    "inputs", [by_hand, lambda: wrong_values(SEED, 200), lambda: wrong_keys(SEED, 60)], ids=["hand", "values", "keys"]
)
def test_bad_input_is_refused_with_a_message_that_helps_and_nothing_is_left(
    inputs: Callable[[], Iterator[Bad]], submit: Submit, queue: Callable[[], set[str]]
) -> None:
    wrong = [line for bad in inputs() if (line := _complaint(bad, submit(bad)))]
    assert not wrong, "\n".join(wrong)
    assert queue() == set()


def test_dry_run_of_spoilt_files_gives_neither_a_traceback_nor_a_job(
    submit: Submit, queue: Callable[[], set[str]]
) -> None:
    codes = [submit(replace(bad, options=("--dry-run",))).code for bad in spoilt_bytes(SEED, 80)]
    assert set(codes) <= {0, 2, 3}
    assert codes.count(2) > 40
    assert queue() == set()


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (Bad("--name", options=("--name", "../x")), 2),
        (Bad("profile.yaml", PROFILE.replace("mpi: mpich", "mpi: \udcff")), 2),
        (Bad("--root", options=("--root", "\udcff/\udcfe\n")), 2),
        (Bad("What to do", "roles: {default: {partition: nowhere}}"), 3),
    ],
)
def test_bad_input_in_a_shell_gives_exit_code_and_message_and_no_traceback(
    tmp_path: Path, bad: Bad, code: int, queue: Callable[[], set[str]]
) -> None:
    _write(bad, tmp_path)
    done = _shell(tmp_path, bad)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert bad.about in done.stderr
    assert queue() == set()


@pytest.mark.parametrize("size", [0, 400, 2000])
def test_disk_that_is_full_at_any_moment_is_refused_and_neither_run_nor_job_stays(
    tmp_path: Path, size: int, queue: Callable[[], set[str]]
) -> None:
    _write(Bad(""), tmp_path)
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); "
    done = _shell(tmp_path, Bad(""), limited)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert not list((tmp_path / "runs").glob("*/*"))
    assert queue() == set()


def _complaint(bad: Bad, said: Said) -> str | None:
    """What is wrong with how a bad input was refused."""
    faults = [f"exit code {said.code}"] if said.code not in (2, 3) else []
    faults += ["no place"] if bad.about not in said.err else []
    faults += ["no remedy"] if not _REMEDY.search(said.err) else []
    faults += ["left " + ", ".join(said.left)] if said.left else []
    faults += ["Python's words"] if re.search(r"Traceback|ValidationError|object at 0x|pydantic", said.err) else []
    if not faults:
        return None
    changed = [str(text)[:2000] for text, good in ((bad.profile, PROFILE), (bad.job, JOB)) if text != good]
    return f"{'; '.join(faults)}: {bad.command} {bad.options} {changed}\n  {said.err[:500]}"


def _write(bad: Bad, folder: Path) -> None:
    for name, content in (("profile.yaml", bad.profile), ("job.yaml", bad.job)):
        text = content.encode(errors="surrogateescape") if isinstance(content, str) else content
        (folder / name).write_bytes(text)
    if bad.prepare:
        bad.prepare(folder)


def _shell(folder: Path, bad: Bad, first: str = "") -> subprocess.CompletedProcess[str]:
    statement = f"{first}import sys; sys.path.insert(0, {str(ROOT)!r}); from srlhpc.cli.main import main; main()"
    arguments = ["submit", *bad.command, "--root", "runs", *bad.options]
    command = [sys.executable, "-c", statement, *arguments]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="surrogateescape", env=environment, timeout=60
    )


def _next_job() -> int:
    config = run_slurm(["scontrol", "show", "config"]).stdout
    number = re.search(r"NEXT_JOB_ID\s*= (\d+)", config)
    assert number
    return int(number[1])


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def _hangs(*_: object) -> None:
    raise TimeoutError(f"nothing happened for {HANG_SECONDS} s")
