"""Which failure came first."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from srlhpc.data.atomic import write_json
from srlhpc.ranks.rank import _write_failure
from srlhpc.runs.failures import failures, first_kind, read_ends
from srlhpc.runs.paths import AttemptPaths, RunPaths
from tests.failing_disk import FailingDisk
from tests.launch.written_runs import last, written_run


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptPaths:
    return last(written_run(tmp_path, "a"))


def raised(attempt: AttemptPaths, rank: int, time: float, **more: Any) -> None:
    content = {"rank": rank, "role": "actor", "label": "actor-0", "host": "there", "time": time, "message": "bad"}
    write_json(attempt.failure(rank), content | {"traceback": "Traceback\nbad", "kind": "exception"} | more)


def test_ranks_that_ended_well_are_no_failure(attempt: AttemptPaths) -> None:
    attempt.exit(1).write_text("0 5.0\n")
    assert failures(attempt) == []


def test_earliest_of_several_failures_is_the_first(attempt: AttemptPaths) -> None:
    attempt.exit(0).write_text("1 9.0\n")
    attempt.exit(1).write_text("137 5.5\n")
    raised(attempt, 2, 7.0)
    assert [failure.rank for failure in failures(attempt)] == [1, 2, 0]


def test_killed_rank_has_role_host_and_signal(attempt: AttemptPaths) -> None:
    attempt.exit(1).write_text("137 5.5\n")
    first = failures(attempt)[0]
    assert first.line == "trainer-default-0 (rank 1, host here) was killed by signal 9 (SIGKILL)"
    assert (first.role, "memory" in first.advice) == ("trainer", True)


def test_exhausted_shared_memory_is_named_with_size_and_remedy(attempt: AttemptPaths) -> None:
    attempt.exit(1).write_text("135 5.5 65536 1024\n")
    first = failures(attempt)[0]
    assert "(SIGBUS): /dev/shm of its node is too small or full, with 64 MiB, 1 MiB of them free then" in first.line
    assert "remount,size=" in first.advice
    assert "--shm-size=" in first.advice


@pytest.mark.parametrize("rest", ["", " ", " 65536"])
def test_sigbus_without_a_known_size_gives_the_advice_only(attempt: AttemptPaths, rest: str) -> None:
    attempt.exit(1).write_text(f"135 5.5{rest}\n")
    first = failures(attempt)[0]
    assert first.line.endswith("was killed by signal 7 (SIGBUS)")
    assert "/dev/shm" in first.advice


def test_rank_that_raised_and_ended_is_one_failure_with_its_message(attempt: AttemptPaths) -> None:
    raised(attempt, 2, 7.0, message="two\nlines")
    attempt.exit(2).write_text("1 7.5\n")
    (failure,) = failures(attempt)
    assert (failure.message, failure.traceback) == ("failed: two lines", "Traceback\nbad")


@pytest.mark.parametrize("text", ["", "13", "x y"])
def test_half_written_end_does_not_count_yet(attempt: AttemptPaths, text: str) -> None:
    attempt.exit(1).write_text(text)
    assert read_ends(attempt) == {}


def test_end_that_is_known_is_not_read_again(attempt: AttemptPaths) -> None:
    attempt.exit(1).write_text("0 5.0\n")
    known = read_ends(attempt)
    attempt.exit(1).unlink()
    attempt.exit(1).mkdir()
    attempt.exit(2).write_text("137 6.0\n")
    assert read_ends(attempt, known) == {**known, **{2: read_ends(attempt)[2]}}


@pytest.mark.parametrize(
    "words",
    [
        "check_MPIR_CVAR_PMI_VERSION(167):  Runtime environment uses unsupported PMI version PMIx. Aborting.",
        "The application was direct launched using srun, but OMPI was not built with SLURM's PMI support",
    ],
)
def test_mpi_started_in_anothers_way_names_the_plugin_and_is_not_retried(attempt: AttemptPaths, words: str) -> None:
    for rank, label in enumerate(("coordinator-0", "trainer-default-0", "actor-0")):
        attempt.log(rank, label).write_text(f"Abort(1): Fatal error in internal_Init_thread\n{words}\n")
        attempt.exit(rank).write_text(f"16 {rank}.0\n")
    first = failures(attempt)[0]
    assert first.message.startswith("could not start MPI: ")
    assert "MPICH --mpi=pmi2 (mpi: mpich), Open MPI --mpi=pmix (mpi: openmpi)" in first.message
    assert "srun_mpi" in first.advice
    # `next_step` does not try again.
    assert first_kind(attempt) == "world"


def test_ranks_that_end_otherwise_do_not_blame_mpi(attempt: AttemptPaths) -> None:
    attempt.exit(1).write_text("16 5.0\n")
    assert failures(attempt)[0].message == "ended with exit code 16"
    assert first_kind(attempt) == ""


def test_failing_rank_leaves_on_a_full_disk_without_another_error(tmp_path: Path, failing_disk: FailingDisk) -> None:
    attempt = RunPaths(tmp_path).attempt(1)
    attempt.make()
    rank: Any = SimpleNamespace(rank=1, label="actor-0", roles=[SimpleNamespace(name="actor", index=0)])
    failing_disk.fill()
    _write_failure(rank, attempt, ValueError("bad"))
    failing_disk.heal()
    _write_failure(rank, attempt, ValueError("bad"))
    assert [failure.message for failure in failures(attempt)] == ["failed: ValueError: bad"]
