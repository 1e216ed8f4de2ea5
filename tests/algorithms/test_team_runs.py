"""Whole runs of agents that are learnt from together: what the two-step game tells apart, resumed bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from srlhpc.errors import UserError
from srlhpc.evaluation import evaluate
from srlhpc.plan.layouts import windows_layout
from srlhpc.plan.planner import make_plan
from srlhpc.plan.replay_sizes import block_records
from srlhpc.plan.sizes import block_fragments
from srlhpc.ranks.serial import run_serial
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.probe import probe_spaces
from tests.launch.making_runs import make_attempt, make_run, outcome, settings
from tests.launch.test_exact_resume import LSTM, differences, whole_and_resumed
from tests.launch.test_mpi_runs import ranks

TWO_STEP = {"factory": "two_step"}
SPREAD = {"factory": "pettingzoo", "env": "mpe2.simple_spread_v3", "kwargs": {"N": 3, "max_cycles": 10}}


def job(rule: str, updates: int, environment: dict[str, Any] = TWO_STEP, **changes: Any) -> dict[str, Any]:
    replay = {"capacity": 2000, "samples_per_insert": 8.0, "start_steps": 64, "block_steps": 8}
    more = {
        "network": {"kind": "mlp", "hidden": [32], "activation": "relu"},
        "batch": {"fragments": 16, "fragment_steps": 2},
        "actors": {"ranks": 1, "ring": 2, "environments": 4, "inference": {"kind": "inline"}},
        "checkpoint": {"every_updates": 20},
        "replay": replay | changes.pop("replay", {}),
    }
    algorithm = {"kind": rule, "learning_rate": 2e-3, "target_every_updates": 20, "team_reward": "mean"}
    algorithm["exploration"] = {"kind": "epsilon", "value": 1.0}
    return settings(environment, stop={"updates": updates}, algorithm=algorithm, **(more | changes))


@pytest.mark.parametrize(("rule", "best"), [("vdn", 7.0), ("qmix", 8.0)])
def test_a_sum_of_values_finds_7_and_a_mixture_8(rule: str, best: float, tmp_path: Path) -> None:
    what = job(rule, 800)
    paths = make_run(tmp_path, what)
    run_serial(paths, make_attempt(paths, what)[0])
    result = evaluate(paths, episodes=10)
    assert (result["return_min"], result["return_max"]) == (best, best)


@pytest.mark.parametrize("rule", ["vdn", "qmix"])
def test_run_goes_on_to_the_same_bits(rule: str, tmp_path: Path) -> None:
    def made(updates: int) -> dict[str, Any]:
        memory = {"network": LSTM, "batch": {"fragments": 8, "fragment_steps": 4, "burn_in_steps": 2}}
        prioritized = {"replay": {"draw": {"kind": "prioritized"}}}
        return job(rule, updates, SPREAD, **memory, **prioritized)

    assert differences(*whole_and_resumed(tmp_path, made, 20, 40)) == []


@pytest.mark.mpi
@pytest.mark.parametrize(("rule", "shards", "trainers", "kind"), [("qmix", 2, 2, "server"), ("vdn", 0, 1, "inline")])
def test_game_is_learnt_by_ranks(rule: str, shards: int, trainers: int, kind: str, tmp_path: Path) -> None:
    inference = {"actors": {"ranks": 2, "ring": 1, "environments": 4, "inference": {"kind": kind}}}
    if kind == "server":
        inference["policy_servers"] = {"ranks": 1}
    # What ranks draw depends on who is faster: with 200 updates three runs in ten find only the 7 of the sure choice.
    what = job(rule, 700, replay={"ranks": shards}, trainers={"ranks": trainers}, **inference)
    paths = make_run(tmp_path, what)
    with ranks(paths, what) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
    assert evaluate(paths, episodes=10)["return_mean"] == (8.0 if rule == "qmix" else 7.0)


def planned(**changes: Any) -> Any:
    spec = ExperimentSpec.model_validate(job("qmix", 10, SPREAD, **changes))
    return make_plan(spec, probe_spaces(spec.environment), serial=True)


def test_fragments_windows_and_records_are_those_of_copies() -> None:
    plan = planned()
    assert block_fragments(plan, "default") == 4
    assert block_records(plan, "default") == 8 * 4
    shapes = {field.name: field.shape for field in windows_layout(plan, "default").fields}
    assert shapes["rewards"] == (2, 16, 3)
    assert shapes["alive"] == (3, 16, 3)
    assert shapes["cut"] == (2, 16)


def test_agents_of_several_kinds_are_refused() -> None:
    tag = {"factory": "pettingzoo", "env": "mpe2.simple_tag_v3"}
    spec = ExperimentSpec.model_validate(job("qmix", 10, tag))
    with pytest.raises(
        UserError,
        match=r"^policies\.default: plays agents of different observation or action spaces \(.*\), and algorithm qmix "
        r"learns from agents of equal ones together; pad their spaces until they are equal, or give each kind a policy "
        r"in `agents`: a team of its own$",
    ):
        make_plan(spec, probe_spaces(spec.environment), serial=True)
