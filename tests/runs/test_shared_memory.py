"""Files in /dev/shm of runs that were killed, over real MPI."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from srlhpc.data.atomic import write_json
from srlhpc.runs.paths import AttemptPaths
from srlhpc.runs.processes import processes_of
from srlhpc.runs.shared_memory import FOLDER, remove_leftovers, sweep
from tests.launch.fake_runs import FakeRun, fake_run, kill, wait_for
from tests.launch.written_runs import dead, hold, last, written_run

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs /dev/shm")


@pytest.fixture
def foreign() -> Iterator[Path]:
    """A file of somebody else's."""
    path = FOLDER / f"mpich_shm_f0e1{os.getpid()}_0"
    path.touch()
    yield path
    path.unlink(missing_ok=True)


def names(run: FakeRun) -> list[Path]:
    return [FOLDER / name for name in run.attempt.shared_memory.read_text().split()]


def test_predicted_names_are_those_of_mpis_files(tmp_path: Path) -> None:
    with fake_run(tmp_path, "mpi") as run:
        run.wait_until_up()
        if not run.attempt.shared_memory.exists():
            pytest.skip("the process manager is not MPICH's")
        assert names(run)[0].exists()


def test_next_command_removes_files_of_killed_runs_and_no_other(tmp_path: Path, foreign: Path) -> None:
    with fake_run(tmp_path, "mpi") as run:
        run.wait_until_up()
        kill([run.process.pid, *run.pids()])
        run.wait()
        # A process that is killed has its memory until the kernel gets to it.
        wait_for(lambda: not processes_of(run.attempt.folder), 30.0)
        left = names(run)[0]
        assert left.exists()
        sweep(tmp_path)
        assert not left.exists()
        assert foreign.exists()


def test_foreman_removes_files_of_a_run_that_ends_at_once(tmp_path: Path) -> None:
    with fake_run(tmp_path, "mpi") as run:
        run.wait_until_up()
        made = names(run)[0]
        run.signal(signal.SIGINT)
        run.signal(signal.SIGINT)
        run.wait()
        assert not made.exists()


def test_sweep_touches_nothing_of_a_living_run(tmp_path: Path) -> None:
    with fake_run(tmp_path, "mpi") as run:
        run.wait_until_up()
        sweep(tmp_path)
        assert len(run.pids()) >= 3
        assert names(run)[0].exists()


def test_mapped_leftover_stays(tmp_path: Path) -> None:
    attempt = AttemptPaths(tmp_path / "0001")
    attempt.make()
    with fake_run(tmp_path, "mpi") as run:
        run.wait_until_up()
        attempt.shared_memory.write_text(f"{names(run)[0].name}\n")
        assert remove_leftovers(attempt) == []
        assert names(run)[0].exists()


@pytest.fixture
def make() -> Iterator[Callable[[str, float], Path]]:
    """Makes files in /dev/shm, and removes them in the end."""
    made: list[Path] = []

    def one(name: str, time: float) -> Path:
        path = FOLDER / f"{name}{os.getpid()}"
        path.touch()
        os.utime(path, (time, time))
        made.append(path)
        return path

    yield one
    for path in made:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("phase", ["starting", "training"])
def test_file_with_a_random_name_of_a_killed_start_is_removed_unless_foreign(
    tmp_path: Path, make: Callable[[str, float], Path], phase: str
) -> None:
    paths = written_run(tmp_path, "mine", status={"attempt": 1, "phase": phase})
    write_json(last(paths).attempt, {"time": 1000.0})
    hold(paths, dead())
    ours, older = make("mpich_shar_tmpA", 1001.0), make("mpich_shar_tmpB", 999.0)
    used, other = make("ucx_shm_posix_", 1001.0), make("other_", 1001.0)
    with used.open():
        sweep(tmp_path)
    assert [path.exists() for path in (ours, older, used, other)] == [phase == "training", True, True, True]


def test_sweep_removes_a_dead_lease_and_leaves_a_living_one(tmp_path: Path) -> None:
    killed, living = written_run(tmp_path, "killed"), written_run(tmp_path, "living")
    hold(killed, dead())
    hold(living)
    sweep(tmp_path)
    assert (killed.lease.exists(), living.lease.exists()) == (False, True)
