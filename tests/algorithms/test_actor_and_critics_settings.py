"""What rules of an actor and critics refuse, and what of their settings differs from other libraries' words."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from srlhpc.environment import Discrete, MultiDiscrete
from srlhpc.errors import UserError
from srlhpc.policies import mlp
from srlhpc.specs.batch import BatchSpec
from tests.algorithms.actor_and_critics import MOVING, TD3, Rule, settings
from tests.policies.making import kind


@MOVING
@pytest.mark.parametrize("actions", [Discrete(3), MultiDiscrete((2, 3))], ids=["discrete", "multi-discrete"])
def test_discrete_actions_are_refused(rule: Rule, actions: Discrete | MultiDiscrete) -> None:
    message = "trains continuous actions, but agents of kind 'walkers' take .*discrete ones; set algorithm.kind to dqn"
    with pytest.raises(UserError, match=f"algorithm {rule['kind']} {message}"):
        settings(rule).needs(kind(actions=actions))


@MOVING
def test_memory_is_refused(rule: Rule) -> None:
    network = mlp.Settings.model_validate({"kind": "mlp", "recurrent": {"kind": "lstm"}})
    with pytest.raises(ValidationError, match=f"{rule['kind']} trains networks without memory; set it to null"):
        settings(rule).check(BatchSpec(fragments=4), network)


@MOVING
@pytest.mark.parametrize("key", ["actor_learning_rate", "critic_learning_rate"])
def test_negative_learning_rates_are_refused(rule: Rule, key: str) -> None:
    with pytest.raises(ValidationError, match="must not be negative"):
        settings(rule, **{key: {"start": 1.0, "end": -1.0, "steps": 5}})


@MOVING
@pytest.mark.parametrize(("word", "ours"), [("tau", "polyak"), ("buffer_size", "replay.capacity"), ("lr", "actor_")])
def test_words_of_other_libraries_are_answered(rule: Rule, word: str, ours: str) -> None:
    with pytest.raises(ValidationError, match=f"unknown key; here it is {ours}"):
        settings(rule, **{word: 1})


def test_defaults_of_td3_are_those_of_the_paper_or_cleanrl() -> None:
    assert settings({"kind": "td3"}).model_dump() == {
        "kind": "td3",
        "actor_learning_rate": 3e-4,
        "critic_learning_rate": 3e-4,
        "gamma": 0.99,
        "polyak": 0.005,
        "actor_every_updates": 2,
        "critic_targets_every_update": False,
        "target_noise": 0.2,
        "target_noise_clip": 0.5,
        "max_gradient_norm": None,
        "adam_epsilon": 1e-8,
        "exploration": {"kind": "gaussian_noise", "std": 0.1, "uniform_steps": 25_000, "evaluation": 0.0},
    }


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        ("policy_delay", "actor_every_updates"),
        ("policy_noise", "target_noise"),
        ("noise_clip", "target_noise_clip"),
        ("exploration_noise", "exploration: {std: ...}"),
    ],
)
def test_words_of_other_libraries_for_td3_are_answered(word: str, ours: str) -> None:
    with pytest.raises(ValidationError, match=f"unknown key; here it is {ours}"):
        settings(TD3, **{word: 1})


def test_standard_deviation_of_the_network_is_refused() -> None:
    network = mlp.Settings.model_validate({"kind": "mlp", "initial_log_std": -1.0})
    with pytest.raises(ValidationError, match="td3 trains an actor without a standard deviation; leave it out"):
        settings(TD3).check(BatchSpec(fragments=4), network)
