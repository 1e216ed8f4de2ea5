"""What moving the scale of returns does to a value head."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from srlhpc.policies.policy import Policy
from srlhpc.specs.policy import NormalizeSpec
from tests.policies.making import kind, observations, policy

ROWS = 16
BATCHES = [torch.randn(50, 1) * 100 + 30, torch.randn(20, 1) * 3 - 5, torch.full((4, 1), 7.0)]


def made(returns: str) -> Policy:
    return policy("mlp", kind(), NormalizeSpec.model_validate({"returns": returns, "decay": 0.5}))


def values(of: Policy) -> Tensor:
    """In units of the return, with the statistics of now."""
    rows = observations(kind(), ROWS)
    first = torch.zeros(ROWS, dtype=torch.bool)
    return of.denormalize_values(of.evaluate(rows, {}, first, action_masks=None).values).detach()


def take_in(of: Policy, returns: Tensor) -> None:
    of.update_returns(of.return_sums(returns, torch.ones(returns.shape, dtype=torch.bool)))


def test_pop_art_keeps_the_values_in_units_of_the_return_when_the_statistics_move() -> None:
    taught = made("pop_art")
    before = values(taught)
    for returns in BATCHES:
        take_in(taught, returns)
        torch.testing.assert_close(values(taught), before, rtol=1e-4, atol=1e-4)


def test_pop_art_moves_the_head_but_nothing_before_it() -> None:
    taught = made("pop_art")
    before = {name: tensor.clone() for name, tensor in taught.named_parameters()}
    take_in(taught, BATCHES[0])
    moved = {name for name, tensor in taught.named_parameters() if not torch.equal(tensor, before[name])}
    assert moved == {"value_head.linear.weight", "value_head.linear.bias"}


def test_targets_only_moves_the_values_with_the_statistics() -> None:
    taught = made("targets_only")
    before = values(taught)
    take_in(taught, torch.tensor([[2.0], [10.0]]))  # mean 6, deviation 4
    torch.testing.assert_close(values(taught), 6 + 4 * before)


@pytest.mark.parametrize(("returns", "factor"), [("pop_art", 1), ("targets_only", 4)])
def test_values_of_acting_are_read_with_the_statistics_of_now_only_where_the_head_stays(
    returns: str, factor: int
) -> None:
    taught = made(returns)
    rows, first = observations(kind(), ROWS), torch.zeros(ROWS, dtype=torch.bool)
    acted = taught.act(rows, {}, first, action_masks=None, generator=None).outputs["value"]
    before = taught.return_values(acted).clone()
    take_in(taught, torch.tensor([[-4.0], [4.0]]))
    torch.testing.assert_close(taught.return_values(acted), factor * before)


@pytest.mark.parametrize("returns", ["pop_art", "targets_only"])
def test_returns_without_valid_records_change_nothing(returns: str) -> None:
    taught = made(returns)
    take_in(taught, BATCHES[0])
    before = {name: tensor.clone() for name, tensor in taught.state_dict().items()}
    taught.update_returns(taught.return_sums(BATCHES[1], torch.zeros(BATCHES[1].shape, dtype=torch.bool)))
    assert all(torch.equal(before[name], tensor) for name, tensor in taught.state_dict().items())
