"""An actor and critics solve a task of continuous actions from what was kept, without any role or stream."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from srlhpc.algorithms import sac, td3
from srlhpc.algorithms.algorithm import Batch
from srlhpc.environment import Continuous
from srlhpc.policies import mlp
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import Collector, context, finish
from tests.algorithms.tiny_environments import Matching

RATES = {"actor_learning_rate": 3e-3, "critic_learning_rate": 1e-2}


@pytest.mark.parametrize(
    ("rule", "keys", "exploration"),
    [(sac, {"temperature_learning_rate": 2e-2}, {}), (td3, {}, {"std": torch.full((32,), 0.3)})],
    ids=["sac", "td3"],
)
def test_cues_are_matched_by_transitions_of_the_past(
    rule: Any, keys: dict[str, Any], exploration: dict[str, torch.Tensor]
) -> None:
    torch.manual_seed(0)
    environment = Matching(Continuous(2), num_environments=32, scale=4.0)
    (kind,) = environment.spaces.kinds
    settings = rule.Settings.model_validate({"kind": rule.__name__, "gamma": 0.5, **RATES, **keys})
    network = mlp.Settings.model_validate({"kind": "mlp", "hidden": [32, 32], "activation": "relu"})
    actor = mlp.build_actor(network, kind, NormalizeSpec(), settings.needs(kind).head)
    algorithm = rule.build(settings, mlp.build_critics(network, actor, NormalizeSpec()), context())
    collector = Collector(environment, actor, steps=16, seed=1, exploration=exploration)
    kept, entropies = collector.batch(), []
    for version in range(400):
        if version % 20 == 19:
            kept = joined(kept, collector.batch())
        entropies.append(finish(algorithm.update(drawn(kept, 128, version))).get("entropy", 0.0))
    cues = torch.rand(200, 2) * 2 - 1
    mode = actor.act({"cue": cues}, {}, torch.zeros(200), action_masks=None, generator=None).actions
    assert (mode - cues).square().mean().item() < 0.05  # 1 / 3 without looking at the cues
    # SAC's begins at 1.1; its target is -2.
    assert sum(entropies[-50:]) / 50 <= 0.0


def joined(kept: Batch, new: Batch) -> Batch:
    return Batch({name: torch.cat([kept.fields[name], new.fields[name]], dim=1) for name in kept.fields}, 0, 0, 0)


def drawn(kept: Batch, windows: int, version: int) -> Batch:
    """Windows of one record, drawn uniformly from all that was kept."""
    records, columns = kept.valid.shape
    generator = torch.Generator().manual_seed(version)
    t = torch.randint(0, records, (windows,), generator=generator)
    b = torch.randint(0, columns, (windows,), generator=generator)
    taken = {
        name: torch.stack([array[t, b], array[t + 1, b]]) if len(array) > records else array[t, b].unsqueeze(0)
        for name, array in kept.fields.items()
    }
    return Batch(taken, 0, version, 0)
