"""Weights that are held in bfloat16 give the bits that autocast gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from srlhpc.environment import Continuous, Kind
from srlhpc.policies.held_weights import hold_weights
from srlhpc.policies.policy import Policy, read_vector, vector_size, write_vector
from srlhpc.specs.policy import NormalizeSpec
from tests.policies.making import EVERYTHING, NOTHING, entity_kind, image, kind, observations, policy, vector

ROWS = 7
PIXELS = kind({"body": vector(6), "view": image(4, 84)})
GRID = kind({"view": image(4, 10)})


def flat(chosen: Policy) -> np.ndarray:
    found = np.empty(vector_size(chosen), np.float32)
    write_vector(chosen, found)
    return found


def acted(chosen: Policy, agents: Kind) -> list[torch.Tensor]:
    seen, first = observations(agents, ROWS), torch.arange(ROWS) == 2
    state = {name: torch.full_like(rows, 0.3) for name, rows in chosen.initial_state(ROWS).items()}
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        found = chosen.act(seen, state, first, action_masks=None, generator=torch.Generator().manual_seed(3))
    return [found.actions, found.log_probs, *found.outputs.values(), *found.state.values()]


@pytest.mark.parametrize("recurrent", [None, {"kind": "lstm", "size": 12}])
@pytest.mark.parametrize("normalize", [NOTHING, EVERYTHING])
@pytest.mark.parametrize(
    ("network", "agents"),
    [
        ("mlp", kind()),
        ("mlp", kind(actions=Continuous(3))),
        ("nature_cnn", PIXELS),
        ("impala_cnn", PIXELS),
        ("minatar_cnn", GRID),
        ("entities", entity_kind()),
    ],
)
def test_held_weights_give_the_bits_of_autocast(
    network: str, agents: Kind, normalize: NormalizeSpec, recurrent: dict[str, object] | None
) -> None:
    trained = policy(network, agents, normalize, seed=1, recurrent=recurrent)
    cast, held = (policy(network, agents, normalize, seed=2, recurrent=recurrent) for _ in range(2))

    hold_weights(held, torch.bfloat16)
    for served in (cast, held):
        read_vector(served, flat(trained))

    assert any(parameter.dtype == torch.bfloat16 for parameter in held.parameters())
    for expected, found in zip(acted(cast, agents), acted(held, agents), strict=True):
        assert torch.equal(expected, found)
