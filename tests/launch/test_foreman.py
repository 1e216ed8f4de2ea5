"""The foreman over real mpiexec, with ranks that only pretend."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from srlhpc.launch.mpiexec import find_mpiexec
from srlhpc.runs.failures import failures
from srlhpc.runs.shared_memory import sweep
from srlhpc.runs.state import run_state
from tests.launch.fake_runs import fake_run, kill, wait_for

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists() or not find_mpiexec(), reason="needs Linux and mpiexec"
)


def test_outcome_of_a_step_is_the_end(tmp_path: Path) -> None:
    with fake_run(tmp_path, "finishes") as run:
        code, err = run.wait()
        assert (code, run.end["state"], run.end["reason"]) == (0, "finished", "steps")
        assert str(run.paths.folder) in err
        assert run.pids() == []
        assert not run.paths.lease.exists()


def test_ctrl_c_writes_a_checkpoint_and_exits_with_130(tmp_path: Path) -> None:
    with fake_run(tmp_path, "trains") as run:
        run.wait_until_up()
        run.signal(signal.SIGINT)
        code, err = run.wait()
        assert (code, run.end["state"], run.pids()) == (130, "interrupted", [])
        assert "press Ctrl-C again to end at once" in err
        assert "updates-000000007.h5" in err


def test_sigterm_ends_training_like_ctrl_c(tmp_path: Path) -> None:
    with fake_run(tmp_path, "trains") as run:
        run.wait_until_up()
        run.signal(signal.SIGTERM)
        assert (run.wait()[0], run.end["state"]) == (130, "interrupted")


def test_second_ctrl_c_ends_all_at_once_though_the_coordinator_is_deaf(tmp_path: Path) -> None:
    with fake_run(tmp_path, "deaf") as run:
        run.wait_until_up()
        run.signal(signal.SIGINT)
        wait_for(run.attempt.stop.exists)
        run.signal(signal.SIGINT)
        code, _ = run.wait()
        assert (code, run.end["state"], run.pids()) == (130, "interrupted", [])
        assert "at once" in run.end["message"]


def test_other_ranks_outlive_a_killed_actor(tmp_path: Path) -> None:
    with fake_run(tmp_path, "trains") as run:
        run.wait_until_up()
        os.kill(run.rank_pid(1), signal.SIGKILL)
        run.wait_until_said("actor-0 (rank 1) was killed by signal 9 (SIGKILL); the other ranks continue")
        run.signal(signal.SIGINT)
        assert run.wait()[0] == 130


@pytest.mark.parametrize("rank", [0, 2], ids=["coordinator", "trainer"])
def test_killed_essential_rank_fails_the_run_and_is_named(tmp_path: Path, rank: int) -> None:
    with fake_run(tmp_path, "trains") as run:
        run.wait_until_up()
        os.kill(run.rank_pid(rank), signal.SIGKILL)
        code, _ = run.wait()
        assert (code, run.end["state"], run.pids()) == (1, "failed", [])
        assert f"(rank {rank}, host here) was killed by signal 9 (SIGKILL)" in run.end["message"]
        assert failures(run.attempt)[0].rank == rank


def test_message_of_a_rank_that_raises_is_the_failure(tmp_path: Path) -> None:
    with fake_run(tmp_path, "raises") as run:
        run.wait()
        first = failures(run.attempt)[0]
        assert (first.rank, first.host, first.message) == (1, "here", "failed: no more")
        assert first.traceback.startswith("Traceback")


def test_coordinator_that_is_silent_at_the_start_is_named_as_missing(tmp_path: Path) -> None:
    with fake_run(tmp_path, "silent") as run:
        code, _ = run.wait()
        assert (code, run.end["reason"], run.pids()) == (1, "start", [])
        assert "missing: coordinator-0 (rank 0), actor-0 (rank 1)" in run.end["message"]


def test_killed_foreman_leaves_nothing_and_status_says_killed(tmp_path: Path) -> None:
    with fake_run(tmp_path, "trains") as run:
        run.wait_until_up()
        assert len(run.pids()) >= 3
        run.signal(signal.SIGKILL)
        run.wait()
        wait_for(lambda: not run.pids())
        state = run_state(run.paths)
        assert (state["state"], state["reason"]) == ("failed", "killed")


def test_next_command_finds_nothing_after_everything_was_killed_at_once(tmp_path: Path) -> None:
    with fake_run(tmp_path, "trains") as run:
        run.wait_until_up()
        kill([run.process.pid, *run.pids()])
        run.wait()
        sweep(tmp_path)
        assert run.pids() == []
        assert run_state(run.paths)["state"] == "failed"


def test_killed_mpiexec_fails_the_run_and_leaves_nothing(tmp_path: Path) -> None:
    with fake_run(tmp_path, "trains") as run:
        run.wait_until_up()
        children = Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        code, _ = run.wait()
        assert (code, run.end["state"], run.pids()) == (1, "failed", [])


def test_status_of_a_run_that_trains_is_running(tmp_path: Path) -> None:
    with fake_run(tmp_path, "trains") as run:
        run.wait_until_up()
        state = run_state(run.paths)
        assert (state["state"], state["attempt"], state["steps"]) == ("running", 1, 7)
