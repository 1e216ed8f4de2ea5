"""What an expert says, and how often it acts."""

from __future__ import annotations

import pytest
import torch

from srlhpc.environment import Discrete
from srlhpc.policies.expert import advice, labelled
from srlhpc.policies.policy import Acted
from tests.policies.making import kind, policy, vector

ROWS = 4000


def acted(*shape: int) -> Acted:
    return Acted(torch.zeros(ROWS, *shape), torch.full((ROWS,), -1.0), {"value": torch.ones(ROWS)}, {})


@pytest.mark.parametrize("shape", [(), (3,)], ids=["single", "parts"])
def test_expert_plays_as_often_as_it_shall_and_labels_every_row(shape: tuple[int, ...]) -> None:
    by_expert, shares = torch.ones(ROWS, *shape), torch.full((ROWS,), 0.25)
    shares[:1000], shares[1000:2000] = 0.0, 1.0
    found = labelled(acted(*shape), by_expert, shares, torch.Generator().manual_seed(0))
    assert torch.equal(found.outputs["expert_action"], by_expert)
    assert torch.equal(found.outputs["value"], torch.ones(ROWS))
    plays = found.actions.reshape(ROWS, -1)[:, 0].bool()
    assert not plays[:1000].any()
    assert plays[1000:2000].all()
    # 2,000 draws of a quarter: five standard deviations are 97.
    assert 400 < int(plays[2000:].sum()) < 600
    assert torch.equal(found.log_probs, torch.where(plays, 0.0, -1.0))


def test_advice_is_the_most_probable_action() -> None:
    expert = policy("mlp", kind({"x": vector(3)}, Discrete(4)))
    seen, first = {"x": torch.randn(20, 3)}, torch.zeros(20, dtype=torch.bool)
    best = expert.act(seen, {}, first, action_masks=None, generator=None).actions
    assert torch.equal(advice(expert, seen, first, action_masks=None), best)
    assert len(best.unique()) > 1
