"""PPO solves tiny tasks in one process: every head, both ends of episodes, memory."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch

from srlhpc.algorithms import ppo
from srlhpc.environment import ActionSpace, Continuous, Discrete, MultiDiscrete
from srlhpc.policies import mlp
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import Collector, context, finish
from tests.algorithms.tiny_environments import Matching


def mean_reward_after_training(
    environment: Matching,
    updates: int,
    *,
    recurrent: dict[str, Any] | None = None,
    normalize: NormalizeSpec | None = None,
    burn_in: int = 0,
    chunks: int = 1,
    **settings: Any,
) -> float:
    """Mean reward of the valid records of the last five batches."""
    torch.manual_seed(0)
    network = mlp.Settings.model_validate({"kind": "mlp", "recurrent": recurrent})
    policy = mlp.build(network, environment.spaces.kinds[0], normalize or NormalizeSpec())
    values = {"kind": "ppo", "learning_rate": 5e-3, "gamma": 0.5, **settings}
    algorithm = ppo.build(ppo.Settings.model_validate(values), policy, context())
    collector = Collector(environment, policy, steps=16, seed=1, burn_in=burn_in, chunks=chunks)
    rewards = []
    for _ in range(updates):
        batch = collector.batch()
        finish(algorithm.update(batch))
        rewards.append(batch.rewards[batch.valid].mean().item())
    return sum(rewards[-5:]) / 5


@pytest.mark.parametrize(
    ("actions", "masked", "chance"),
    [
        (Discrete(5), False, 0.2),
        (Discrete(5), True, 0.25),
        (MultiDiscrete((3, 4)), False, (1 / 3 + 1 / 4) / 2),
    ],
    ids=["discrete", "masked", "multi-discrete"],
)
@pytest.mark.parametrize("truncates", [False, True], ids=["terminated", "truncated"])
def test_choices_are_learnt_to_95_percent(actions: ActionSpace, masked: bool, chance: float, truncates: bool) -> None:
    def environment() -> Matching:
        return Matching(actions, masked=masked, truncates=truncates)

    before = mean_reward_after_training(environment(), 5, learning_rate=0.0)
    assert before == pytest.approx(chance, abs=0.06)
    assert mean_reward_after_training(environment(), 25) > 0.95


def test_continuous_actions_are_learnt_with_normalized_observations_and_returns() -> None:
    normalize = NormalizeSpec(observations=True, returns=True)
    reward = mean_reward_after_training(Matching(Continuous(2)), 60, normalize=normalize, learning_rate=1e-2)
    assert reward > 0.95  # 0.63 with the initial policy


@pytest.mark.parametrize("returns", ["pop_art", "targets_only"])
def test_a_task_of_large_returns_is_learnt_with_a_moving_scale(returns: Literal["pop_art", "targets_only"]) -> None:
    normalize = NormalizeSpec(returns=returns, decay=0.9)
    assert mean_reward_after_training(Matching(Discrete(5), scale=1000.0), 30, normalize=normalize) > 950


@pytest.mark.parametrize(
    ("kind", "burn_in", "chunks", "updates"),
    # Cues that lie in a fragment's burn-in, or in the chunk before, get no gradient: these take longer.
    [("lstm", 0, 1, 45), ("gru", 4, 1, 90), ("lstm", 0, 2, 90)],
)
def test_a_cue_is_remembered_with_memory(kind: str, burn_in: int, chunks: int, updates: int) -> None:
    environment = Matching(Discrete(3), length=4, delay=True)
    recurrent = {"kind": kind, "size": 32}
    reward = mean_reward_after_training(
        environment, updates, recurrent=recurrent, burn_in=burn_in, chunks=chunks, gamma=0.9
    )
    assert reward > 0.95 / 4  # one reward in four records


def test_a_cue_is_not_remembered_without_memory() -> None:
    assert mean_reward_after_training(Matching(Discrete(3), length=4, delay=True), 40, gamma=0.9) < 0.45 / 4
