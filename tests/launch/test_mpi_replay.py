"""Whole runs with replay under mpiexec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.checkpoint_folder import CheckpointFolder
from srlhpc.data.checkpoint_names import updates_of
from srlhpc.evaluation import evaluate
from srlhpc.plan.planner import make_plan
from srlhpc.plan.replay_sizes import tolerance
from srlhpc.runs.replay_checkpoint import check_files
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.probe import probe_spaces
from tests.launch.making_runs import change_job, make_run, outcome
from tests.launch.test_mpi_runs import actors, job, ranks

pytestmark = pytest.mark.mpi

REPLAY: dict[str, Any] = {
    "capacity": 4000,
    "samples_per_insert": 8.0,
    "start_steps": 200,
    "block_steps": 8,
    "draw": {"kind": "prioritized"},
}


def replayed(stop: dict[str, Any], *, shards: int, trainers: int = 1, kind: str = "inline") -> dict[str, Any]:
    return job(
        stop,
        algorithm={"kind": "dqn", "learning_rate": 5e-3, "target_every_updates": 20, "exploration": EXPLORATION},
        batch={"fragments": 32, "fragment_steps": 1},
        replay=REPLAY | {"ranks": shards},
        trainers={"ranks": trainers},
        actors=actors(kind),
        checkpoint={"every_seconds": None, "every_updates": 20},
    )


EXPLORATION = {"kind": "epsilon", "value": 0.3}
"""All columns explore: by the ladder two thirds of 32 hardly do, and within 3,600 steps three of 30 serial runs never
found the way to one side (returns of 0.16 to 0.4, at any rate and any n); by this, none of 30, nor of 28 under MPI."""

UPDATES = 900
"""The rate falls to 0 with the last of them; at a constant one, the last updates leave some runs below the best."""


@pytest.mark.parametrize(("shards", "trainers", "kind"), [(0, 2, "inline"), (2, 1, "server"), (2, 2, "trainer")])
def test_catch_is_learnt_wherever_replay_is_and_its_rate_is_kept(
    shards: int, trainers: int, kind: str, tmp_path: Path
) -> None:
    what = replayed({"updates": UPDATES}, shards=shards, trainers=trainers, kind=kind)
    steps = UPDATES * 32 * trainers // 8
    what["policies"]["default"]["algorithm"]["learning_rate"] = {"start": 5e-3, "end": 0.0, "steps": steps}
    paths = make_run(tmp_path, what)
    with ranks(paths, what) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
        replay, trainer = (run.status["roles"][role] for role in ("replay", "trainer"))
    spec = ExperimentSpec.model_validate(what)
    plan = make_plan(spec, probe_spaces(spec.environment))
    assert trainer["steps_trained"] <= replay["steps_inserted"]
    assert replay["records_drawn"] >= UPDATES * 32 * trainers
    # Of what came in before the first draw, what was under way then counts on neither side.
    under_way = 8 * plan.spec.actors.environments * len(plan.groups)
    ahead = replay["records_drawn"] - 8.0 * replay["records_inserted"]
    room = sum(tolerance(plan, shard) for shard in plan.replays("default"))
    assert -room - 8.0 * (REPLAY["start_steps"] * 2 + 2 * under_way) <= ahead <= room
    assert evaluate(paths, episodes=50)["return_mean"] >= 0.8


def test_run_with_replay_goes_on_without_a_killed_actor(tmp_path: Path) -> None:
    what = replayed({"updates": 100_000}, shards=1)
    with ranks(make_run(tmp_path, what), what) as run:
        run.lose("actor-1", updates=50)
        run.stop()


def test_killed_replay_rank_fails_the_run_by_name_and_the_next_attempt_fills_anew(tmp_path: Path) -> None:
    what = replayed({"updates": 100_000}, shards=1)
    paths = make_run(tmp_path, what)
    with ranks(paths, what) as run:
        run.wait_for_updates(21)
        run.kill("replay-default-0")
        run.wait()
        ended = outcome(run.attempt)
        assert (ended["state"], ended["reason"]) == ("failed", "killed"), run.logs()
        assert "replay-default-0" in ended["message"]
    newest = CheckpointFolder(paths.checkpoints).newest_valid()
    assert newest is not None
    more = replayed({"updates": updates_of(newest.path) + 20}, shards=1)
    change_job(paths, more)
    with ranks(paths, more, newest.path) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
        assert "replay-default-0 starts empty" in run.logs()
        assert run.status["roles"]["replay"]["steps_inserted"] >= REPLAY["start_steps"]


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 1), (0, 2)])
def test_replay_in_checkpoints_comes_back_on_as_many_ranks_as_there_are(
    before: int, after: int, tmp_path: Path
) -> None:
    kept = {"checkpoint": True, "start_steps": 2000}
    what = replayed({"updates": 100_000}, shards=before)
    what["policies"]["default"]["replay"] |= kept
    paths = make_run(tmp_path, what)
    with ranks(paths, what) as run:
        run.wait_for_updates(30)
        run.stop()
        blocks = run.status["roles"]["replay"]["blocks"]
    newest = CheckpointFolder(paths.checkpoints).newest_valid()
    assert newest is not None
    stores = [part["store"] for part in newest.tree["replay"].values()]
    assert sum(min(store["inserted_blocks"], len(store["generations"])) for store in stores) == blocks
    check_files(newest.tree, paths.replay)
    more = replayed({"updates": updates_of(newest.path) + 20}, shards=after)
    more["policies"]["default"]["replay"] |= kept
    change_job(paths, more)
    with ranks(paths, more, newest.path) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
        assert "goes on with" in run.logs()
        counters = run.status["roles"]["replay"]
        assert counters["refills"] == 0.0
        # Fewer came in than an empty store waits for.
        assert counters["records_inserted"] < 2000
        assert run.status["warnings"] == []


def test_replay_whose_files_are_gone_starts_empty_and_says_why(tmp_path: Path) -> None:
    what = replayed({"updates": 25}, shards=1)
    what["policies"]["default"]["replay"]["checkpoint"] = True
    paths = make_run(tmp_path, what)
    with ranks(paths, what) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
    newest = CheckpointFolder(paths.checkpoints).newest_valid()
    assert newest is not None
    max(paths.replay.iterdir()).unlink()
    more = replayed({"updates": 45}, shards=1)
    change_job(paths, more)
    with ranks(paths, more, newest.path) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
        (warning,) = run.status["warnings"]
        assert "replay of policy default starts empty" in warning
        assert "is missing; training goes on when 200 steps came in" in warning
        assert run.status["roles"]["replay"]["refills"] == 1.0
