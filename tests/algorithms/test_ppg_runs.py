"""Whole runs of phasic policy gradient: serial ones go on bit for bit, and several trainers share their phases."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.plan.sizes import batches_bytes, kept_bytes
from srlhpc.plan.table import plan_table
from srlhpc.policies.policy import vector_size
from srlhpc.ranks.policies import build_policy, build_trained
from srlhpc.runs.paths import RunPaths
from tests.launch.making_runs import change_job, checkpoint, make_attempt, make_run, outcome, settings, tree_of
from tests.launch.test_exact_resume import differences, whole_and_resumed
from tests.launch.test_mpi_runs import job as catch
from tests.launch.test_mpi_runs import ranks

PPG = {
    "kind": "ppg",
    "learning_rate": 5e-3,
    "minibatches": 2,
    "auxiliary_every_updates": 3,
    "auxiliary_epochs": 2,
    "auxiliary_minibatches": 2,
}
JOBS: dict[str, dict[str, Any]] = {
    "memory in chunks": {
        "environment": {"factory": "recall", "choices": 3, "delay": 2},
        "network": {"kind": "mlp", "hidden": [16], "recurrent": {"kind": "lstm", "size": 8}},
        "normalize": {"observations": True, "returns": "pop_art", "decay": 0.9},
        "batch": {"fragments": 8, "fragment_steps": 8, "chunk_steps": 4},
    },
    "images of two agents": {
        "environment": {
            "factory": "synthetic",
            "observation_shape": [2, 10, 10],
            "observation_dtype": "uint8",
            "agents": 2,
            "episode_steps": 9,
        },
        "network": {"kind": "minatar_cnn", "features": 8},
    },
}


def job(updates: int, name: str) -> dict[str, Any]:
    changes = dict(JOBS[name])
    return settings(
        changes.pop("environment"),
        stop={"updates": updates},
        algorithm=PPG,
        checkpoint={"every_updates": 4},
        **changes,
    )


@pytest.mark.parametrize("name", JOBS)
def test_run_goes_on_to_the_same_bits_across_an_auxiliary_phase(name: str, tmp_path: Path) -> None:
    # Phases are in updates 3 and 6, the run ends after 4 and after 8.
    whole, resumed = whole_and_resumed(tmp_path, partial(job, name=name), 4, 8)
    assert differences(whole, resumed) == []
    state = whole["policies"]["default"]["optimizer"]
    assert (state["phases.count"], state["kept.count"]) == (2, 2)
    (observations,) = (array for key, array in state.items() if key.startswith("kept.obs."))
    assert observations.dtype == (np.uint8 if "images" in name else np.float32)
    assert observations.shape[:2] == (8, 3 * 8)


def test_what_travels_is_what_ppo_trains(tmp_path: Path) -> None:
    made = job(1, "images of two agents")
    plan = make_attempt(make_run(tmp_path, made), made)[1]
    policy = build_policy(plan, "default")
    trained = build_trained(plan, "default", policy)
    assert trained.get_submodule("policy") is policy
    assert vector_size(policy) == sum(parameter.numel() for parameter in policy.parameters())
    alike = [build_trained(plan, "default", policy).get_parameter("auxiliary_head.linear.weight") for _ in range(2)]
    assert alike[0].equal(alike[1])


def test_plan_tells_what_is_kept(tmp_path: Path) -> None:
    made = job(1, "images of two agents")
    plan = make_attempt(make_run(tmp_path, made), made)[1]
    # 3 batches of 8 fragments of 8 records: 200 bytes of image, two flags, a target.
    assert kept_bytes(plan, "default") == 3 * 8 * 8 * (200 + 2 + 4)
    made["policies"]["default"]["algorithm"] = {"kind": "ppo", "minibatches": 2}
    without = make_attempt(make_run(tmp_path, made, "ppo"), made)[1]
    assert batches_bytes(plan, "default") - batches_bytes(without, "default") == kept_bytes(plan, "default")
    assert "  kept: 0.0 MB of batches on each trainer, by the learning rule" in plan_table(plan).splitlines()
    assert "kept:" not in plan_table(without)


def told(paths: RunPaths) -> dict[str, Any]:
    """What the last line of the metrics says of the policy."""
    last: dict[str, Any] = json.loads(paths.metrics.read_text().splitlines()[-1])["policies"]["default"]
    return last


@pytest.mark.mpi
def test_two_trainers_under_mpi_have_their_phases_together_and_go_on_with_what_one_had_kept(tmp_path: Path) -> None:
    what = catch({"updates": 7}, algorithm=PPG)
    what["checkpoint"] = {"every_seconds": None, "every_updates": 7}
    paths = make_run(tmp_path, what)
    with ranks(paths, what) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
    assert told(paths)["auxiliary_phases"] == 2
    assert tree_of(paths, 7)["policies"]["default"]["optimizer"]["kept.count"] == 1
    what |= {"stop": {"updates": 12}, "trainers": {"ranks": 2}}
    change_job(paths, what)
    with ranks(paths, what, checkpoint(paths, 7)) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
        assert run.status["roles"]["trainer"]["steps_trained"] > 5 * 16 * 16
    # The third phase was due with two batches more, not with three.
    assert told(paths)["auxiliary_phases"] == 4
    assert tree_of(paths, 12)["policies"]["default"]["optimizer"]["kept.count"] == 0
