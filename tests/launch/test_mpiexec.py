"""How the ranks of one machine are started."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from srlhpc.errors import UserError
from srlhpc.launch.mpiexec import find_mpiexec, flavour, mpiexec_command, rank_environment
from srlhpc.launch.rank_script import rank_script
from srlhpc.runs.failures import read_ends
from srlhpc.runs.paths import AttemptPaths

SHARED = Path("/dev/shm")


@dataclass(frozen=True)
class Rank:
    rank: int
    label: str


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptPaths:
    made = AttemptPaths(tmp_path / "with space" / "0001")
    made.make()
    return made


def run_script(attempt: AttemptPaths, program: list[str], rank: str = "1", **how: Any) -> int:
    script = attempt.folder / "rank.sh"
    script.write_text(rank_script(attempt, [Rank(0, "coordinator-0"), Rank(1, "actor-0")], program, **how))
    environment = {key: value for key, value in os.environ.items() if key != "OMPI_COMM_WORLD_RANK"}
    return subprocess.run(["sh", script], env=environment | {"PMI_RANK": rank}, stderr=subprocess.DEVNULL).returncode


@pytest.mark.parametrize(
    ("program", "code"),
    [("print('hello')", "0"), ("raise SystemExit(7)", "7"), ("import os; os.kill(os.getpid(), 9)", "137")],
)
def test_script_succeeds_and_records_how_its_rank_ended(attempt: AttemptPaths, program: str, code: str) -> None:
    assert run_script(attempt, [sys.executable, "-c", program]) == 0
    assert attempt.exit(1).read_text().split()[0] == code
    assert float(attempt.exit(1).read_text().split()[1]) > 1.7e9


def test_script_of_a_rank_that_dies_of_sigbus_reports_the_shared_memory(attempt: AttemptPaths) -> None:
    run_script(attempt, ["sh", "-c", "kill -BUS $$"])
    code, _, size, free = attempt.exit(1).read_text().split()
    assert code == "135"
    assert 0 <= int(free) <= int(size)
    assert read_ends(attempt)[1].shared_memory == (int(size) / 1024, int(free) / 1024)


def test_output_of_a_rank_goes_into_its_log(attempt: AttemptPaths) -> None:
    run_script(attempt, [sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr)"])
    assert sorted(attempt.log(1, "actor-0").read_text().split()) == ["err", "out"]


@pytest.mark.parametrize("rank", ["0", "1"])
def test_rank_outlives_term_at_its_script_and_that_of_rank_0_takes_note(attempt: AttemptPaths, rank: str) -> None:
    program = "import os, signal; os.kill(os.getppid(), signal.SIGTERM); os.kill(os.getpid(), signal.SIGTERM)"
    run_script(attempt, [sys.executable, "-c", program], rank, ignored="USR1 TERM", noted=attempt.terminated)
    assert attempt.exit(int(rank)).read_text().split()[0] == "0"
    assert attempt.terminated.exists() == (rank == "0")


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs /dev/shm")
@pytest.mark.parametrize("waits", [True, False])
def test_nothing_stays_of_a_rank_that_stands_by_after_term_at_its_script(attempt: AttemptPaths, waits: bool) -> None:
    names = ("mapped", "opened", "other")
    mapped, opened, other = (SHARED / f"mpich_shm_test_{os.getpid()}_{name}" for name in names)
    program = f"""
import mmap, os, signal
just_made = open({str(opened)!r}, "w")
file = open({str(mapped)!r}, "w+b")
file.truncate(4096)
memory = mmap.mmap(file.fileno(), 4096)
open({str(other)!r}, "w")
os.kill(os.getppid(), signal.SIGTERM)
while os.path.exists({str(mapped)!r}) and {waits}: signal.pause()
"""
    if waits:
        attempt.standby.touch()
    how = {"ignored": "USR1 TERM", "noted": attempt.terminated, "until": attempt.standby}
    try:
        run_script(attempt, [sys.executable, "-c", program], **how)
        assert attempt.exit(1).read_text().split()[0] == ("137" if waits else "0")
        assert mapped.exists() != waits
        assert opened.exists() != waits
        assert other.exists()
    finally:
        for path in (mapped, opened, other):
            path.unlink(missing_ok=True)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs /dev/shm")
def test_script_that_is_killed_as_soon_as_its_rank_is_has_removed_what_the_rank_made(attempt: AttemptPaths) -> None:
    made = SHARED / f"mpich_shm_test_{os.getpid()}_made"
    # As PMI does, which kills the step of a rank that has gone without leaving MPI.
    program = f"""
import os, signal
script, (read, write) = os.getppid(), os.pipe()
if os.fork() == 0:
    os.close(write)
    os.read(read, 1)
    os.kill(script, signal.SIGKILL)
    os._exit(0)
file = open({str(made)!r}, "w")
os.kill(script, signal.SIGTERM)
while True: signal.pause()
"""
    attempt.standby.touch()
    try:
        code = run_script(
            attempt,
            [sys.executable, "-c", program],
            ignored="USR1 TERM",
            noted=attempt.terminated,
            until=attempt.standby,
        )
        assert code == -signal.SIGKILL
        assert not made.exists()
    finally:
        made.unlink(missing_ok=True)


def test_script_of_a_rank_that_stands_by_minds_a_term_that_comes_before_its_rank_is_started(
    attempt: AttemptPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    date = tmp_path / "bin" / "date"
    date.parent.mkdir()
    date.write_text('#!/bin/sh\nkill -TERM "$PPID"\nexec /bin/date "$@"\n')
    date.chmod(0o755)
    monkeypatch.setenv("PATH", f"{date.parent}:{os.environ['PATH']}")
    attempt.standby.touch()
    program = "import time; time.sleep(20)"
    run_script(
        attempt,
        [sys.executable, "-c", program],
        ignored="USR1 TERM",
        noted=attempt.terminated,
        until=attempt.standby,
    )
    assert attempt.exit(1).read_text().split()[0] in ("137", "143")
    # Not even between the first two lines is it ignored.
    assert "TERM" not in next(line for line in (attempt.folder / "rank.sh").read_text().splitlines() if "trap" in line)


def test_rank_outlives_usr1_at_its_script(attempt: AttemptPaths) -> None:
    program = "import os, signal; os.kill(os.getppid(), signal.SIGUSR1); os.kill(os.getpid(), signal.SIGUSR1)"
    run_script(attempt, [sys.executable, "-c", program])
    assert attempt.exit(1).read_text().split()[0] == "0"


def test_script_of_a_rank_that_is_not_planned_fails(attempt: AttemptPaths) -> None:
    assert run_script(attempt, ["true"], rank="2") == 1


def test_environment_has_one_thread_and_no_trace_of_an_outer_mpi_job(attempt: AttemptPaths) -> None:
    made = rank_environment({"PMI_RANK": "3", "OMPI_COMM_WORLD_SIZE": "2", "HOME": "/h"}, attempt, "mpich")
    assert (made["OMP_NUM_THREADS"], made["OMP_WAIT_POLICY"], made["HDF5_USE_FILE_LOCKING"]) == (
        "1",
        "PASSIVE",
        "FALSE",
    )
    assert (made["HOME"], made["SRLHPC_ATTEMPT"]) == ("/h", str(attempt.folder))
    assert not {"PMI_RANK", "OMPI_COMM_WORLD_SIZE"} & set(made)


def test_transports_that_the_user_chose_stay_in_the_environment(attempt: AttemptPaths) -> None:
    assert rank_environment({"UCX_TLS": "tcp"}, attempt, "mpich")["UCX_TLS"] == "tcp"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("HYDRA build details:\n    Version:  5.0.2", "mpich"),
        ("mpiexec (OpenRTE) 4.1.4", "openmpi4"),
        ("mpirun (Open MPI) 5.0.3", "openmpi5"),
    ],
)
def test_output_of_mpiexec_names_its_flavour(tmp_path: Path, answer: str, expected: str) -> None:
    program = tmp_path / "mpiexec"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
    program.chmod(0o755)
    assert flavour(str(program)) == expected


def test_unknown_flavour_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "mpiexec"
    program.write_text("#!/bin/sh\necho LAM\n")
    program.chmod(0o755)
    with pytest.raises(UserError, match="pip install mpich"):
        flavour(str(program))


def test_missing_mpiexec_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="pip install mpich"):
        find_mpiexec()


def test_command_for_open_mpi_allows_more_ranks_than_cores() -> None:
    assert "--oversubscribe" in mpiexec_command("mpiexec", "openmpi4", 9, Path("rank.sh"))
    assert ":OVERSUBSCRIBE" in mpiexec_command("mpiexec", "openmpi5", 9, Path("rank.sh"))


def test_script_on_a_full_disk_reports_all_the_same_how_its_rank_ended(attempt: AttemptPaths) -> None:
    mount = shutil.which("mount")
    if not mount or subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "none", attempt.exits]).returncode:
        pytest.skip("only root can mount a small file system")
    try:
        fill = f"dd if=/dev/zero of={shlex.quote(str(attempt.exits / 'fill'))} bs=1k; kill -9 $$"
        assert run_script(attempt, ["sh", "-c", fill]) == 0
        assert os.statvfs(attempt.exits).f_bavail == 0
        assert [end.code for end in read_ends(attempt).values()] == [137]
    finally:
        subprocess.run(["umount", attempt.exits], check=True)
