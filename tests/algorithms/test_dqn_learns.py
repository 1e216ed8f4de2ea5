"""DQN solves small tasks from fragments that it keeps, in one process, without any role or stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from srlhpc.algorithms import dqn
from srlhpc.environment import Discrete
from srlhpc.policies import mlp
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import Collector, changed, context, finish
from tests.algorithms.tiny_environments import Matching

COPIES, RECORDS = 16, 18
HEADS = {
    "means": {"rescale": True},
    "quantiles": {"distribution": {"kind": "quantile", "quantiles": 11}},
    "atoms": {"distribution": {"kind": "categorical", "atoms": 21, "minimum": -1.0, "maximum": 5.0}},
}


def mean_reward(environment: Matching, *, recurrent: Any = None, updates: int, **keys: Any) -> float:
    """Greedy reward per record after so many updates; half of the records are drawn at random while training."""
    torch.manual_seed(0)
    (agents,) = environment.spaces.kinds
    settings = dqn.Settings.model_validate(
        {"kind": "dqn", "learning_rate": 5e-3, "gamma": 0.9, "target_every_updates": 10, "n_steps": 3, **keys}
    )
    network = mlp.Settings.model_validate({"kind": "mlp", "hidden": [32], "recurrent": recurrent})
    policy = mlp.build_action_values(network, agents, NormalizeSpec(), settings.head)
    algorithm = dqn.build(settings, policy, context())
    explorers = {"epsilon": torch.full((COPIES,), 0.5)}
    playing = Collector(environment, policy, steps=RECORDS, seed=1, exploration=explorers)
    kept = [playing.batch()]
    for version in range(updates):
        if version % 4 == 3:
            kept.append(playing.batch())
        batch = kept[version * 7 % len(kept)]
        batch = changed(batch, cut=torch.zeros_like(batch.terminated))
        finish(algorithm.update(replace(batch, after=2, version=version)))
    greedy = Collector(environment, policy, steps=60, seed=2, exploration={"epsilon": torch.zeros(COPIES)})
    played = greedy.batch()
    return (played.rewards.sum() / played.valid.sum()).item()


@pytest.mark.parametrize("keys", HEADS.values(), ids=HEADS)
def test_cues_are_matched_with_masks_and_both_kinds_of_ends(keys: dict[str, Any]) -> None:
    for truncates in (False, True):
        environment = Matching(Discrete(4), COPIES, masked=True, truncates=truncates)
        assert mean_reward(environment, updates=150, **keys) > 0.9


def test_cue_is_remembered_with_memory_from_stored_states() -> None:
    environment = Matching(Discrete(3), COPIES, delay=True)
    found = mean_reward(environment, recurrent={"kind": "gru", "size": 32}, updates=300)
    assert found > 0.9 / 4  # one reward at the end of four records; 1 / 12 by chance
