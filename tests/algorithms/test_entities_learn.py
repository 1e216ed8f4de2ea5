"""PPO with entity networks solves a task whose answer only the masks give away."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from srlhpc.algorithms import ppo
from srlhpc.policies import entities
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import Collector, context, finish
from tests.finding import KEYS, Finding
from tests.finding import Settings as FindingSettings

NORMALIZE = NormalizeSpec(observations=True, returns="pop_art", decay=0.999, observation_clip=5.0, smallest_std=0.1)


def mean_reward_after_training(updates: int, masks: dict[str, str], **settings: Any) -> float:
    """Mean reward of the valid records of the last five batches; each is used twice, in chunks."""
    torch.manual_seed(0)
    environment = Finding(FindingSettings(factory="tests.finding"), num_environments=64)
    keys = KEYS | {"sets": {"claims": masks}}
    network = entities.Settings.model_validate(
        {"kind": "entities", "width": 16, "heads": 2, "features": 32} | keys | settings
    )
    policy = entities.build(network, environment.spaces.kinds[0], NORMALIZE)
    algorithm = ppo.build(ppo.Settings(kind="ppo", learning_rate=3e-3, gamma=0.5, minibatches=2), policy, context())
    collector = Collector(environment, policy, steps=16, seed=1, chunks=4 if network.recurrent else 1)
    rewards = []
    for _ in range(updates):
        batch = collector.batch()
        for use in range(2):
            batch.is_first_use = use == 0
            finish(algorithm.update(batch))
        rewards.append(batch.rewards[batch.valid].mean().item())
    return sum(rewards[-5:]) / 5


@pytest.mark.parametrize("settings", [{}, {"shared": True}, {"recurrent": {"kind": "lstm", "size": 32}}], ids=str)
def test_the_claim_of_the_visible_entity_is_learnt(settings: dict[str, Any]) -> None:
    reward = mean_reward_after_training(25, {"visible": "visible", "exists": "exists"}, **settings)
    assert reward > 0.95


def test_which_entity_is_honest_is_not_learnt_without_the_mask() -> None:
    # Voting with the majority of four claims, one of which is honest, is right more often than by chance.
    assert mean_reward_after_training(25, {"exists": "exists"}) < 0.7
