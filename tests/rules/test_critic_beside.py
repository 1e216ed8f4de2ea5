"""A rule whose critic does not act: it stays with the trainer, and all that travels is the actor."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from srlhpc.data.tree import leaves
from srlhpc.evaluation import evaluate
from srlhpc.plan.plan import Plan
from srlhpc.policies.policy import vector_size
from srlhpc.ranks.policies import build_policy, build_trained
from srlhpc.ranks.serial import run_serial
from tests.launch.making_runs import make_attempt, make_run, outcome, settings
from tests.launch.test_exact_resume import whole_and_resumed
from tests.rules import critic_beside
from tests.rules.critic_beside_modules import ActorBesideCritic

CATCH = {"factory": "catch", "rows": 5, "columns": 3}


def job(updates: int, **changes: Any) -> dict[str, Any]:
    return settings(
        CATCH,
        stop={"updates": updates},
        network={"kind": "tests.rules.critic_beside"},
        algorithm={"kind": "tests.rules.advantage"},
        batch={"fragments": 16, "fragment_steps": 16},
        actors={"ranks": 1, "ring": 2, "environments": 8},
        **changes,
    )


def planned(root: Path) -> Plan:
    paths = make_run(root, job(1))
    return make_attempt(paths, job(1))[1]


def test_critic_is_no_part_of_what_travels(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    policy = build_policy(plan, "default")
    trained = build_trained(plan, "default", policy)
    assert isinstance(trained, ActorBesideCritic)
    assert trained.policy is policy
    numbers = sum(parameter.numel() for parameter in trained.parameters())
    critic = sum(parameter.numel() for parameter in trained.critic.parameters())
    assert vector_size(policy) == numbers - critic < numbers


def test_every_trainer_begins_with_the_same_critic_and_every_rank_with_the_same_actor(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    torch.manual_seed(1)
    one = build_trained(plan, "default", build_policy(plan, "default")).state_dict()
    torch.manual_seed(2)
    other = build_trained(plan, "default", build_policy(plan, "default")).state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_servers_and_evaluators_never_build_the_critic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[object] = []
    build_critic = critic_beside.build_critic

    def build_and_count(*arguments: Any) -> ActorBesideCritic:
        built.append(arguments)
        return build_critic(*arguments)

    monkeypatch.setattr(critic_beside, "build_critic", build_and_count)
    inline = {"actors": {"ranks": 2, "ring": 1, "environments": 8, "inference": {"kind": "inline"}}}
    run = job(2, evaluators={"ranks": 1, "episodes": 2, "every_updates": 1}) | inline
    paths = make_run(tmp_path, run)
    run_serial(paths, make_attempt(paths, run)[0])
    assert len(built) == 1
    assert evaluate(paths, episodes=2)["episodes"] == 2
    assert len(built) == 1


def test_critic_is_in_the_checkpoint_with_the_optimizer_and_resumes_exactly(tmp_path: Path) -> None:
    trees = whole_and_resumed(tmp_path, partial(job, checkpoint={"every_updates": 3}), 3, 6)
    part, resumed = (tree["policies"]["default"] for tree in trees)
    assert not [name for name in part["parameters"] if "critic" in name]
    assert [name for name in part["optimizer"] if "critic" in name]
    expected, found = dict(leaves(part)), dict(leaves(resumed))
    assert expected.keys() == found.keys()
    assert all(np.array_equal(expected[name], found[name]) for name in expected)


def test_catch_is_learnt(tmp_path: Path) -> None:
    run = job(300)
    run["stop"] = {"updates": 300, "return_mean": 0.9}
    paths = make_run(tmp_path, run)
    attempt, _ = make_attempt(paths, run)
    run_serial(paths, attempt)
    assert outcome(attempt)["reason"] == "return_mean"
