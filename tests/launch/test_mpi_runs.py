"""Whole runs under mpiexec: every arrangement trains, and an actor may die."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.atomic import read_json
from srlhpc.data.checkpoint_folder import CheckpointFolder
from srlhpc.data.checkpoint_names import updates_of
from srlhpc.launch.fork_server import ForkServer, fork_server
from srlhpc.launch.mpiexec import start_ranks
from srlhpc.launch.rank_script import rank_program
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.processes import kill_processes_of, processes_of
from srlhpc.runs.shared_memory import remove_leftovers
from srlhpc.specs.load import load_experiment
from tests.comm.launching import mpiexec
from tests.launch.fake_runs import wait_for
from tests.launch.making_runs import change_job, make_attempt, make_run, outcome, settings, tree_of
from tests.openmpi import openmpi_python

pytestmark = pytest.mark.mpi

LIMIT_SECONDS = 240.0


@dataclass
class MpiRun:
    """The ranks of one attempt."""

    paths: RunPaths
    attempt: AttemptPaths
    process: subprocess.Popen[bytes]

    @property
    def status(self) -> dict[str, Any]:
        status = read_json(self.paths.status) or {}
        return status if status.get("attempt") == self.attempt.number else {}

    def wait_for_updates(self, updates: int) -> None:
        wait_for(lambda: self.status.get("updates", 0) >= updates, LIMIT_SECONDS)

    def kill(self, label: str) -> None:
        (pid,) = (rank["pid"] for rank in self.status["ranks"] if rank["label"] == label)
        os.kill(pid, signal.SIGKILL)

    def lose(self, label: str, *, updates: int) -> None:
        """Kills one of five ranks in the middle of training, and waits until the others have gone on for so long."""
        self.wait_for_updates(5)
        self.kill(label)
        wait_for(lambda: self.status["ranks_alive"] == 4, LIMIT_SECONDS)
        self.wait_for_updates(self.status["updates"] + updates)

    def stop(self) -> None:
        """Asks for an orderly end, and waits for it."""
        self.attempt.stop.touch()
        self.wait()
        assert outcome(self.attempt)["state"] == "interrupted", self.logs()

    def wait(self) -> None:
        try:
            self.process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the ranks did not end; their logs:\n{self.logs()}")

    def logs(self) -> str:
        return "\n".join(f"{path.name}:\n{path.read_text()}" for path in sorted(self.attempt.logs.iterdir()))


@contextmanager
def ranks(paths: RunPaths, job: dict[str, Any], goes_on_from: Path | None = None) -> Iterator[MpiRun]:
    """Starts the ranks of the next attempt, and leaves nothing of them."""
    mpiexec()
    attempt, plan = make_attempt(paths, job, goes_on_from, serial=False)
    program, environment = rank_program(attempt), dict[str, str]()
    if (server := _fork_server(sys.executable)) is not None:
        program, environment = server.program(program), server.environment
    run = MpiRun(paths, attempt, start_ranks(attempt, plan.ranks, program, environment))
    try:
        yield run
    finally:
        kill_processes_of(attempt.folder)
        run.process.wait()
        remove_leftovers(attempt)


@cache
def _fork_server(python: str) -> ForkServer | None:
    """One for all tests of this process with that interpreter, so that torch is loaded once and not once a rank."""
    assert python == sys.executable
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(fork_server())


def job(stop: dict[str, Any], **changes: Any) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "network": {"kind": "mlp", "hidden": [32]},
        "algorithm": {"kind": "ppo", "learning_rate": 5e-3, "epochs": 4, "minibatches": 2},
        "batch": {"fragments": 16, "fragment_steps": 16},
        "actors": actors("server"),
        "checkpoint": {"every_seconds": None, "every_updates": 10},
    }
    return settings({"factory": "catch", "rows": 5, "columns": 3}, stop=stop, **chosen | changes)


def actors(kind: str, ranks: int = 2) -> dict[str, Any]:
    return {"ranks": ranks, "ring": 2, "environments": 8, "inference": {"kind": kind}}


@pytest.mark.parametrize("kind", ["server", "inline", "trainer"])
def test_catch_is_solved_wherever_the_network_acts(kind: str, tmp_path: Path) -> None:
    what = job({"return_mean": 0.9, "steps": 300_000}, actors=actors(kind))
    with ranks(make_run(tmp_path, what), what) as run:
        run.wait()
        assert (outcome(run.attempt)["state"], outcome(run.attempt)["reason"]) == ("finished", "return_mean"), (
            run.logs()
        )
        wait_for(lambda: not processes_of(run.attempt.folder), LIMIT_SECONDS)
        status = run.status
        assert status["return_mean"] >= 0.9
        assert ("exchange requests and replies through" in run.logs()) == (kind != "inline")
        assert "memory cannot be shared" not in run.logs()
        assert status["roles"]["trainer"]["steps_trained"] == status["steps"]
        assert tree_of(run.paths, status["updates"])["meta"]["steps"] == status["steps"]


def test_two_trainers_and_two_servers_train_together(tmp_path: Path) -> None:
    what = job({"updates": 12}, trainers={"ranks": 2}, policy_servers={"ranks": 2})
    with ranks(make_run(tmp_path, what), what) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
        status = run.status
        assert status["updates"] == 12
        assert status["roles"]["trainer"]["steps_trained"] == status["steps"]
        assert status["steps"] > 12 * 16 * 16


@pytest.mark.parametrize("lag", [0, 1])
def test_limited_lag_is_kept_and_with_lag_0_nothing_is_dropped(lag: int, tmp_path: Path) -> None:
    what = job({"updates": 12}, max_policy_lag=lag)
    with ranks(make_run(tmp_path, what), what) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
        assert run.status["policy_lag_max"] <= lag
        # With a larger limit a fragment that others overtake may become too old, and is dropped (rl/policy_lag.py).
        assert lag > 0 or run.status["roles"]["trainer"]["dropped_fragments"] == 0


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_training_goes_on_to_its_end_without_a_killed_actor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mpi: str
) -> None:
    if mpi == "openmpi":
        monkeypatch.setattr(sys, "executable", openmpi_python())
    what = job({"updates": 100_000})
    with ranks(make_run(tmp_path, what), what) as run:
        run.lose("actor-1", updates=20)
        run.stop()
        (warning,) = run.status["warnings"]
        assert "actor-1" in warning
        assert "SIGKILL" in warning
        assert tree_of(run.paths, run.status["updates"])["meta"]["updates"] == run.status["updates"]


def test_killed_trainer_fails_the_run_by_name_and_the_next_attempt_goes_on(tmp_path: Path) -> None:
    what = job({"updates": 100_000})
    paths = make_run(tmp_path, what)
    with ranks(paths, what) as run:
        run.wait_for_updates(15)
        run.kill("trainer-default-0")
        run.wait()
        assert outcome(run.attempt)["state"] == "failed", run.logs()
        assert "trainer-default-0" in outcome(run.attempt)["message"]
        wait_for(lambda: not processes_of(run.attempt.folder), LIMIT_SECONDS)
    newest = CheckpointFolder(paths.checkpoints).newest_valid()
    assert newest is not None
    updates = updates_of(newest.path)
    assert updates >= 10
    what |= {"stop": {"updates": updates + 10}, "actors": actors("server", ranks=1)}
    change_job(paths, what)
    with ranks(paths, what, newest.path) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
        assert run.status["updates"] == updates + 10


def test_error_in_an_environment_ends_the_run_as_failed_with_its_message(tmp_path: Path) -> None:
    what = job({"updates": 100_000})
    what["environment"] = {"factory": "tests.broken_environment", "fails_at": 200}
    with ranks(make_run(tmp_path, what), what) as run:
        run.wait()
        ended = outcome(run.attempt)
        assert (ended["state"], ended["reason"]) == ("failed", "environment"), run.logs()
        assert "environment tests.broken_environment on rank 3 (actor-0), group" in ended["message"]
        assert "ValueError: the world has ended" in ended["message"]


def test_hide_and_seek_in_a_small_room_trains_both_teams_and_tells_what_they_did(tmp_path: Path) -> None:
    small = Path(__file__).parents[2] / "jobs" / "hns_small.yaml"
    changes = ["stop.steps=null", "stop.updates=8", "actors.environments=8"]
    what = load_experiment(small, changes).model_dump(mode="json", by_alias=True)
    with ranks(make_run(tmp_path, what), what) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
        assert run.status["agent_steps"] == 2 * run.status["steps"]
        last = json.loads(run.paths.metrics.read_text().splitlines()[-1])
        assert last["episodes"] > 0
        told = last["episode"]
        assert told["hider_return"] == -told["seeker_return"] != 0.0
        assert told["max_box_move"] > 0.0
        assert set(last["policies"]) == {"everybody"}
