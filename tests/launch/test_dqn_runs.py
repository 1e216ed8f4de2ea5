"""Whole runs with dqn, in one process: learnt, resumed bit for bit, and what of a job is refused before it starts."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from srlhpc.environment import ActionSpace, ArraySpec, Continuous, Discrete, Kind, MultiDiscrete, Spaces
from srlhpc.errors import UserError
from srlhpc.evaluation import evaluate
from srlhpc.plan.layouts import block_layout, request_layout
from srlhpc.plan.planner import make_plan
from srlhpc.ranks.serial import run_serial
from srlhpc.runs.checkpoint_fit import check_fit
from srlhpc.runs.paths import RunPaths
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.load import dump_experiment, load_job
from srlhpc.specs.probe import probe_spaces
from tests.launch.making_runs import make_attempt, make_run, outcome, settings
from tests.launch.test_exact_resume import differences, whole_and_resumed
from tests.plan.test_planner import planned

JOBS = Path(__file__).parents[2] / "jobs"
CATCH = {"factory": "catch", "rows": 5, "columns": 3}
MEMORY = {"kind": "lstm", "size": 8}


def job(
    updates: int,
    *,
    memory: bool = False,
    stop: dict[str, Any] | None = None,
    max_age: int | None = None,
    **algorithm: Any,
) -> dict[str, Any]:
    replay: dict[str, Any] = {"capacity": 4000, "samples_per_insert": 4.0, "start_steps": 200, "block_steps": 8}
    replay["max_age"] = max_age
    batch: dict[str, Any] = {"fragments": 16, "fragment_steps": 1}
    network: dict[str, Any] = {"kind": "mlp", "hidden": [32], "activation": "relu"}
    if memory:
        batch = {"fragments": 8, "fragment_steps": 4, "burn_in_steps": 2}
        network["recurrent"] = MEMORY
    return settings(
        CATCH,
        stop=stop or {"updates": updates},
        network=network,
        algorithm={"kind": "dqn", "learning_rate": 2e-3, "target_every_updates": 10, **algorithm},
        batch=batch,
        replay=replay | {"draw": {"kind": "prioritized"}},
        actors={"ranks": 1, "ring": 2, "environments": 4},
        checkpoint={"every_updates": 20},
    )


def test_catch_is_learnt_and_evaluated_without_exploring(tmp_path: Path) -> None:
    run = job(0, stop={"updates": 4000, "return_mean": 0.7})
    paths = make_run(tmp_path, run)
    attempt, _ = make_attempt(paths, run)
    run_serial(paths, attempt)
    assert outcome(attempt)["reason"] == "return_mean"
    assert evaluate(paths, episodes=50)["return_mean"] >= 0.9


def test_cartpole_is_learnt_by_its_job(tmp_path: Path) -> None:
    fewer = ("stop.steps=20000", "policies.default.algorithm.learning_rate.steps=20000", "checkpoint.every_seconds=1e9")
    run = load_job(str(JOBS / "cartpole_dqn.yaml"), fewer).spec.model_dump(mode="json")
    paths = make_run(tmp_path, run)
    run_serial(paths, make_attempt(paths, run)[0])
    # In these few of its steps: 408, 407 and 161 for seeds 1 to 3. Acting at random returns 22.
    assert evaluate(paths, episodes=20)["return_mean"] >= 100


@pytest.mark.parametrize("memory", [False, True], ids=["none", "lstm"])
@pytest.mark.parametrize("algorithm", [{}, {"distribution": {"kind": "quantile", "quantiles": 5}}], ids=["mean", "qr"])
def test_resumed_run_gives_the_bits_of_an_undisturbed_one(
    memory: bool, algorithm: dict[str, Any], tmp_path: Path
) -> None:
    one, other = whole_and_resumed(tmp_path, partial(job, memory=memory, **algorithm), 20, 40)
    assert differences(one["policies"], other["policies"]) == []
    assert "target" in one["policies"]["default"]["optimizer"]


def test_resumed_run_forgets_what_an_undisturbed_one_forgets(tmp_path: Path) -> None:
    one, other = whole_and_resumed(tmp_path, partial(job, max_age=20), 40, 80)
    assert differences(one["policies"], other["policies"]) == []
    stores = [part["store"] for tree in (one, other) for part in tree["replay"].values()]
    # Records before the first update are of version 0, the oldest that are drawn now of a later one.
    assert all(store["drawn_from"] > 0 for store in stores)
    assert differences(*stores) == []


def plan(**changes: Any) -> Any:
    whole = {
        "algorithm": {"kind": "dqn"},
        "replay": {"capacity": 1000, "samples_per_insert": 8.0},
        "batch": {"fragments": 8, "fragment_steps": 1},
    }
    return planned(**whole | changes)


def test_records_hold_what_first_priorities_are_made_of_and_requests_grow_by_nothing() -> None:
    made = plan()
    outputs = [field.name for field in block_layout(made, "default").fields if field.name.startswith("out.")]
    assert outputs == ["out.q_taken", "out.q_max"]
    assert "epsilon" not in " ".join(field.name for field in request_layout(made, "default").fields)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"dueling": False}, "algorithm.dueling: the checkpoint has true, the spec wants false"),
        ({"head_units": 8}, "algorithm.head_units: the checkpoint has null, the spec wants 8"),
        ({"distribution": {"kind": "quantile"}}, "algorithm.distribution: the checkpoint has null, the spec wants"),
        ({"n_steps": 5, "double": False, "target_every_updates": 7}, None),
    ],
)
def test_checkpoint_with_another_head_is_refused_before_ranks_start(
    change: dict[str, Any], text: str | None, tmp_path: Path
) -> None:
    tree = {"policies": {"default": {}}, "meta": {"spec": dump_experiment(plan().spec)}}
    other = plan(algorithm={"kind": "dqn", **change})
    if text is None:
        check_fit(tree, tmp_path / "one.h5", RunPaths(tmp_path), other)
        return
    with pytest.raises(UserError, match=re.escape(f"policies.default.{text}")):
        check_fit(tree, tmp_path / "one.h5", RunPaths(tmp_path), other)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"replay": None}, "policies.default.replay: is missing; algorithm dqn draws from replay"),
        (
            {"normalize": {"returns": "pop_art"}},
            "policies.default.normalize.returns: is 'pop_art', but algorithm dqn keeps no running statistics of",
        ),
    ],
    ids=["replay", "returns"],
)
def test_job_that_dqn_cannot_train_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError, match=re.escape(text)):
        plan(**changes)


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        (Continuous(2), "policies.default: algorithm dqn compares the values of single choices, but agents of kind"),
        (MultiDiscrete((2, 2)), "have several choices at once; set algorithm.kind to ppo"),
    ],
)
def test_agents_that_dqn_cannot_train_are_refused(actions: ActionSpace, text: str) -> None:
    kind = Kind("agent", ("agent",), {"obs": ArraySpec((2,), "float32")}, actions)
    with pytest.raises(UserError, match=re.escape(text)):
        plan(spaces=Spaces((kind,)))


def test_a_network_without_the_contract_is_refused_with_both_names() -> None:
    kind = Kind("agent", ("agent",), {"obs": ArraySpec((2,), "float32")}, Discrete(2))
    with pytest.raises(UserError, match="algorithm dqn trains networks that offer 'action_values', but network tests"):
        plan(spaces=Spaces((kind,)), network={"kind": "tests.rules.critic_beside"})


def beside_ppo(lag: int, **changes: Any) -> dict[str, Any]:
    """One side by dqn from two replay ranks, the other by ppo from blocks of the same groups."""
    network = {"kind": "mlp", "hidden": [8]}
    replay = {"capacity": 2000, "samples_per_insert": 1.0, "start_steps": 100, "block_steps": 8, "ranks": 2}
    made = settings(
        {"factory": "rock_paper_scissors"},
        stop={"updates": 100},
        actors={"ranks": 3, "ring": 1, "environments": 4, "inference": {"kind": "inline"}},
    )
    made["policies"] = {
        "z": {
            "network": network,
            "algorithm": {"kind": "dqn"},
            "batch": {"fragments": 16, "fragment_steps": 1},
            "replay": replay | changes,
        },
        "b": {
            "network": network,
            "algorithm": {"kind": "ppo", "minibatches": 1},
            "batch": {"fragments": 12, "fragment_steps": 8},
            "max_policy_lag": lag,
        },
    }
    return made | {"agents": [{"match": "agent_0", "policy": "z"}, {"match": "agent_1", "policy": "b"}]}


@pytest.mark.parametrize("block_steps", [8, 4, 16, 6])
def test_replay_of_two_shards_beside_fresh_batches_does_not_stand_still(block_steps: int, tmp_path: Path) -> None:
    what = beside_ppo(0, block_steps=block_steps)
    paths = make_run(tmp_path, what)
    attempt, plan = make_attempt(paths, what)
    assert any("replay ranks are fed by 2, 1 groups" in note for note in plan.notes)
    run_serial(paths, attempt)
    assert outcome(attempt)["reason"] == "updates"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"samples_per_insert": 0.001},
            "so an update, of 16 records, comes after every 16,000 steps, but the",
        ),
        ({"start_steps": 1500, "capacity": 4000}, "start_steps: is 1500, but the run ends after stop.steps 1000"),
    ],
)
def test_replay_of_any_policy_that_would_learn_nothing_is_refused(changes: dict[str, Any], message: str) -> None:
    what = beside_ppo(0, **changes) | {"stop": {"steps": 1000}}
    what["policies"] = dict(reversed(what["policies"].items()))
    with pytest.raises(UserError, match=message):
        make_plan(ExperimentSpec.model_validate(what), probe_spaces(ExperimentSpec.model_validate(what).environment))
