"""SAC in whole runs: what travels, what a checkpoint holds, and what a run that goes on gives."""

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

WALKING = {"factory": "synthetic", "actions": {"kind": "continuous", "size": 2}, "episode_steps": 9}


def job(updates: int, draw: str = "uniform") -> dict[str, Any]:
    return settings(
        WALKING,
        stop={"updates": updates},
        network={"kind": "mlp", "hidden": [16], "activation": "relu"},
        algorithm={"kind": "sac", "exploration": {"kind": "uniform_start", "steps": 80}},
        batch={"fragments": 16, "fragment_steps": 1},
        replay={
            "capacity": 200,
            "samples_per_insert": 8,
            "start_steps": 50,
            "block_steps": 5,
            "draw": {"kind": draw},
        },
        actors={"ranks": 2, "ring": 1, "environments": 4, "inference": {"kind": "inline"}},
        checkpoint={"every_updates": 10},
    )


@pytest.mark.parametrize("draw", ["uniform", "prioritized"])
def test_run_that_goes_on_gives_the_same_bits(tmp_path: Path, draw: str) -> None:
    one, other = whole_and_resumed(tmp_path, partial(job, draw=draw), 20, 30)
    assert differences(one["policies"], other["policies"]) == []
    assert differences(one["roles"], other["roles"]) == []


def test_actor_is_what_travels_and_the_rest_is_the_rules_state(tmp_path: Path) -> None:
    made = job(10)
    run = make_run(tmp_path, made)
    attempt, _ = make_attempt(run, made)
    run_serial(run, attempt)
    assert outcome(attempt)["reason"] == "updates"
    part = tree_of(run, 10)["policies"]["default"]
    assert set(part["parameters"]) == {"torso.layers.0.weight", "torso.layers.0.bias", "head.weight", "head.bias"}
    numbers = 2 * ((8 + 2 + 1) * 16 + 16 + 1)
    kept = part["optimizer"]
    assert kept["critics.parameters"].shape == kept["targets.parameters"].shape == (numbers,)
    assert not np.array_equal(kept["critics.parameters"], kept["targets.parameters"])
    assert np.isfinite(evaluate(run, episodes=4)["return_mean"])


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
