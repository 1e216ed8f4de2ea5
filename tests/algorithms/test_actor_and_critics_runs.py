"""An actor and critics in whole runs: what travels, what a checkpoint holds, what a run that goes on gives."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.errors import UserError
from srlhpc.evaluation import evaluate
from srlhpc.launch.preparation import prepare_plan
from srlhpc.plan.plan import Plan
from srlhpc.ranks.serial import run_serial
from srlhpc.runs.checkpoint_fit import check_fit
from srlhpc.runs.paths import RunPaths
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.load import dump_experiment
from tests.launch.making_runs import make_attempt, make_run, outcome, settings, tree_of
from tests.launch.test_exact_resume import differences, whole_and_resumed
from tests.launch.test_mpi_runs import ranks

WALKING = {"factory": "synthetic", "actions": {"kind": "continuous", "size": 2}, "episode_steps": 9}


UNIFORM = {"kind": "uniform_start", "steps": 80}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "sac": {"kind": "sac", "exploration": UNIFORM},
    "td3": {"kind": "td3", "exploration": {"kind": "gaussian_noise", "uniform_steps": 80}},
}
LAYERS = {"torso.layers.0.weight", "torso.layers.0.bias", "head.weight", "head.bias"}


def job(updates: int, rule: str = "sac", draw: str = "uniform", trainers: int = 1) -> dict[str, Any]:
    return settings(
        WALKING,
        stop={"updates": updates},
        network={"kind": "mlp", "hidden": [16], "activation": "relu"},
        algorithm=ALGORITHMS[rule],
        batch={"fragments": 16, "fragment_steps": 1},
        replay={
            "capacity": 200,
            "samples_per_insert": 8,
            "start_steps": 50,
            "block_steps": 5,
            "draw": {"kind": draw},
        },
        actors={"ranks": 2, "ring": 1, "environments": 4, "inference": {"kind": "inline"}},
        trainers={"ranks": trainers},
        checkpoint={"every_updates": 7},
    )


@pytest.mark.parametrize("draw", ["uniform", "prioritized"])
@pytest.mark.parametrize("rule", ALGORITHMS)
def test_run_that_goes_on_gives_the_same_bits(tmp_path: Path, rule: str, draw: str) -> None:
    # After the 21st update, what acts of TD3 is that of the 20th.
    one, other = whole_and_resumed(tmp_path, partial(job, rule=rule, draw=draw), 21, 30)
    assert differences(one["policies"], other["policies"]) == []
    assert differences(one["roles"], other["roles"]) == []


@pytest.mark.parametrize(("rule", "outputs"), [("sac", 4), ("td3", 2)])
def test_actor_is_what_travels_and_the_rest_is_the_rules_state(tmp_path: Path, rule: str, outputs: int) -> None:
    made = job(9, rule)
    run = make_run(tmp_path, made)
    attempt, _ = make_attempt(run, made)
    run_serial(run, attempt)
    assert outcome(attempt)["reason"] == "updates"
    part = tree_of(run, 9)["policies"]["default"]
    assert set(part["parameters"]) == LAYERS
    assert part["parameters"]["head.bias"].shape == (outputs,)
    numbers = 2 * ((8 + 2 + 1) * 16 + 16 + 1)
    kept = part["optimizer"]
    assert kept["critics.parameters"].shape == kept["targets.parameters"].shape == (numbers,)
    assert not np.array_equal(kept["critics.parameters"], kept["targets.parameters"])
    assert np.isfinite(evaluate(run, episodes=4)["return_mean"])


@pytest.mark.mpi
@pytest.mark.parametrize(("rule", "trainers"), [("sac", 2), ("td3", 1), ("td3", 2)])
def test_ranks_under_mpi_train_it(tmp_path: Path, rule: str, trainers: int) -> None:
    made = job(10, rule, "prioritized", trainers)
    paths = make_run(tmp_path, made)
    with ranks(paths, made) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
    assert np.isfinite(evaluate(paths, episodes=4)["return_mean"])


@pytest.mark.parametrize(("before", "after"), [("auto", 0.2), (0.2, "auto")])
def test_checkpoint_with_and_without_a_trained_temperature_do_not_fit_each_other(
    before: str | float, after: str | float, tmp_path: Path
) -> None:
    tree = {"policies": {"default": {}}, "meta": {"spec": dump_experiment(planned_with(before).spec)}}
    words = f"policies.default.algorithm.temperature: the checkpoint has {before!r}, the spec wants {after!r}"
    with pytest.raises(UserError, match=re.escape(words)):
        check_fit(tree, tmp_path / "one.h5", RunPaths(tmp_path), planned_with(after))


def test_fixed_temperature_may_change_at_a_resume(tmp_path: Path) -> None:
    tree = {"policies": {"default": {}}, "meta": {"spec": dump_experiment(planned_with(0.2).spec)}}
    check_fit(tree, tmp_path / "one.h5", RunPaths(tmp_path), planned_with(0.1))


def planned_with(temperature: str | float) -> Plan:
    made = job(10)
    made["policies"]["default"]["algorithm"]["temperature"] = temperature
    return prepare_plan(ExperimentSpec.model_validate(made), serial=True)
