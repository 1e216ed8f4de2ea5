"""Whole runs of agents that take turns: perfect play of Nim, resumed bit for bit, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.environment import KindStep, empty_kind_step
from srlhpc.errors import UserError
from srlhpc.plan.layouts import block_layout, request_layout, window_shape
from srlhpc.plan.plan import Plan
from srlhpc.plan.planner import make_plan
from srlhpc.ranks.policies import build_policy, load_parameters
from srlhpc.ranks.serial import run_serial
from srlhpc.roles.acting.player import Player
from srlhpc.runs.paths import RunPaths
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.probe import probe_spaces
from tests.launch.making_runs import checkpoint, make_attempt, make_run, settings
from tests.launch.test_exact_resume import LSTM, differences, whole_and_resumed

STONES = 10
NIM = {"factory": "nim", "stones": STONES}
RULES: dict[str, dict[str, Any]] = {
    "ppo": {
        "algorithm": {
            "kind": "ppo",
            "learning_rate": 3e-3,
            "epochs": 4,
            "minibatches": 2,
            "entropy_coefficient": 0.02,
            "gamma": 0.9,
        },
        "batch": {"fragments": 32, "fragment_steps": 16},
    },
    "vtrace": {"algorithm": {"kind": "vtrace"}, "batch": {"fragments": 32, "fragment_steps": 8}},
    "ppg": {
        "algorithm": {"kind": "ppg", "auxiliary_every_updates": 2, "auxiliary_epochs": 1, "auxiliary_minibatches": 4},
        "batch": {"fragments": 32, "fragment_steps": 8},
    },
    "dqn": {
        "algorithm": {"kind": "dqn", "learning_rate": 2e-3, "target_every_updates": 20, "n_steps": 1, "gamma": 0.9}
        | {"exploration": {"kind": "epsilon", "value": 0.5}},
        "batch": {"fragments": 32, "fragment_steps": 1},
        "replay": {"capacity": 4000, "samples_per_insert": 8.0, "start_steps": 200, "block_steps": 8},
    },
}


def job(rule: str, updates: int, **changes: Any) -> dict[str, Any]:
    more = {
        "network": {"kind": "mlp", "hidden": [32]},
        "actors": {"ranks": 1, "ring": 2, "environments": 8, "inference": {"kind": "inline"}},
        "checkpoint": {"every_updates": updates},
    }
    return settings(changes.pop("environment", NIM), stop={"updates": updates}, **(RULES[rule] | more | changes))


def planned(rule: str, **changes: Any) -> Plan:
    spec = ExperimentSpec.model_validate(job(rule, 10, **changes))
    return make_plan(spec, probe_spaces(spec.environment), serial=True)


def shown(plan: Plan) -> KindStep:
    """Every heap in an environment of its own, at the turn of player 0."""
    now = empty_kind_step(plan.spaces.kinds[0], STONES)
    now.alive[:] = now.valid[:, 0] = True
    heaps = np.arange(1, STONES + 1)
    now.observations["heap"][:] = np.eye(STONES + 1)[heaps][:, None]
    assert now.action_masks is not None
    now.action_masks[:] = (np.arange(3) < heaps[:, None])[:, None]
    return now


def left_by(paths: RunPaths, plan: Plan, updates: int) -> list[int]:
    """Stones that the policy leaves of each heap from 1 on."""
    policy = build_policy(plan, "default", paths)
    tree = read_checkpoint(checkpoint(paths, updates))
    load_parameters(policy, tree["policies"]["default"]["parameters"], "test")
    player, actions = Player(policy, "player", (0, 1), STONES), np.zeros((STONES, 2), np.int64)
    player.act(shown(plan), actions)
    left: list[int] = (np.arange(1, STONES + 1) - actions[:, 0] - 1).tolist()
    return left


@pytest.mark.parametrize(("rule", "updates"), [("ppo", 70), ("dqn", 400)])
def test_self_play_finds_the_move_that_wins(rule: str, updates: int, tmp_path: Path) -> None:
    what = job(rule, updates)
    paths = make_run(tmp_path, what)
    attempt, plan = make_attempt(paths, what)
    run_serial(paths, attempt)
    left = left_by(paths, plan, updates)
    won = [heap for heap in range(1, STONES + 1) if heap % 4]
    assert {heap: left[heap - 1] % 4 for heap in won} == dict.fromkeys(won, 0)


@pytest.mark.parametrize("rule", ["ppo", "vtrace", "ppg", "dqn"])
def test_run_with_memory_goes_on_to_the_same_bits(rule: str, tmp_path: Path) -> None:
    def made(updates: int) -> dict[str, Any]:
        fragments = {"fragments": 48, "fragment_steps": 6}
        changes: dict[str, Any] = {"network": LSTM, "batch": fragments, "checkpoint": {"every_updates": 2}}
        if rule == "dqn":
            changes["batch"] = {"fragments": 8, "fragment_steps": 4, "burn_in_steps": 2}
        three = {"factory": "nim", "stones": 7, "players": 3}
        return job(rule, updates, environment=three, **changes)

    assert differences(*whole_and_resumed(tmp_path, made, 2, 4)) == []


@pytest.mark.parametrize("rule", ["ppo", "vtrace"])
def test_trainer_sees_memory_as_the_actor_did(rule: str, tmp_path: Path) -> None:
    what = job(rule, 3, environment={"factory": "nim", "stones": 7, "players": 3}, network=LSTM)
    what["policies"]["default"]["batch"]["fragments"] = 48
    paths = make_run(tmp_path, what)
    run_serial(paths, make_attempt(paths, what)[0])
    told = json.loads(paths.metrics.read_text().splitlines()[-1])["policies"]["default"]
    # Without lag the first ratios are 1.
    assert told["ratio_max_deviation_first"] < 1e-5


def test_only_blocks_of_turns_know_who_acts_behind_them() -> None:
    shapes = {field.name: field.shape for field in block_layout(planned("vtrace"), "default").fields}
    assert shapes["alive"] == (9, 8, 2)
    assert shapes["valid"] == (8, 8, 2)
    catch = planned("vtrace", environment={"factory": "catch"})
    others = {field.name: field.shape for field in block_layout(catch, "default").fields}
    assert others["alive"] == others["valid"] == (8, 8, 1)
    assert {field.name for field in request_layout(planned("ppo"), "default").fields} == {
        "obs.heap",
        "first",
        "action_masks",
        "alive",
    }


def test_windows_hold_the_next_turns() -> None:
    # A turn of two is followed by the other's, and a sum of three turns by five records more.
    assert window_shape(planned("dqn"), "default").after == 1
    three = {"algorithm": {"kind": "dqn", "n_steps": 3}}
    assert window_shape(planned("dqn", **three), "default").after == 5
    assert window_shape(planned("dqn", **three, environment={"factory": "catch"}), "default").after == 2


def test_fragments_shorter_than_a_round_are_refused_unless_windows_are_drawn() -> None:
    three = {"factory": "nim", "stones": 7, "players": 3}
    planned("vtrace", environment=three, batch={"fragments": 48, "fragment_steps": 3})
    with pytest.raises(UserError, match=r"fragment_steps: is 2, but from .* there may be 3 steps.*set it to 3 or more"):
        planned("vtrace", environment=three, batch={"fragments": 48, "fragment_steps": 2})
    # Windows of replay hold the next turns behind their one step.
    assert planned("dqn", environment=three).spec.policies["default"].batch.fragment_steps == 1


def test_rules_of_teams_and_chunks_are_refused() -> None:
    replay = {"replay": {"capacity": 4000, "block_steps": 8}, "batch": {"fragments": 8, "fragment_steps": 1}}
    with pytest.raises(UserError, match=r"qmix learns from what all agents of a team do at once.*set algorithm\.kind"):
        planned("dqn", algorithm={"kind": "qmix"}, **replay)
    with pytest.raises(UserError, match=r"chunk_steps: is 4, but agents of kind 'player' take turns.*leave chunk"):
        planned("ppo", network=LSTM, batch={"fragments": 32, "fragment_steps": 8, "chunk_steps": 4})
