from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from srlhpc.rl.deterministic import Deterministic


def acting(*actions: float) -> Deterministic:
    """Entries of one dimension."""
    return Deterministic(torch.atanh(torch.tensor(actions).double()).unsqueeze(-1))


def numbers(*values: float) -> Tensor:
    return torch.tensor(values).unsqueeze(-1)


def test_smoothed_action_is_the_number_worked_out_by_hand() -> None:
    # noise of .9 is clipped to .5, and .8 + .5 to 1
    assert acting(0.8).smoothed(numbers(4.5), std=0.2, clip=0.5).item() == 1.0


def test_noise_of_smoothing_is_clipped_on_either_side_before_it_is_added() -> None:
    smoothed = acting(0.1, 0.1, 0.1).smoothed(numbers(9.0, -9.0, 1.0), std=0.2, clip=0.5)
    assert smoothed.flatten().tolist() == pytest.approx([0.6, -0.4, 0.3])


def test_explored_actions_are_clipped_and_their_density_is_that_before() -> None:
    drawn = acting(0.95, -0.95, 0.0).explored(numbers(2.0, -1.0, 1.0), torch.full((3,), 0.1))
    assert drawn.actions.flatten().tolist() == pytest.approx([1.0, -1.0, 0.1])
    # log N(.2; 0, .1) = -2 - log .1 - log(2 pi) / 2
    assert drawn.log_probs.tolist() == pytest.approx([-0.6163535, 0.8836466, 0.8836466], abs=1e-6)


def test_density_is_the_product_over_dimensions() -> None:
    noise, stds = torch.randn(6, 3), torch.rand(6) + 0.1
    drawn = Deterministic(torch.randn(6, 3)).explored(noise, stds)
    expected = torch.distributions.Normal(0.0, stds.unsqueeze(-1)).log_prob(stds.unsqueeze(-1) * noise).sum(-1)
    torch.testing.assert_close(drawn.log_probs, expected)


def test_without_noise_the_action_itself_is_taken_with_log_density_0() -> None:
    policy = acting(0.3, -0.7)
    drawn = policy.explored(numbers(1.0, -2.0), torch.zeros(2))
    assert torch.equal(drawn.actions, policy.actions)
    assert drawn.log_probs.tolist() == [0.0, 0.0]


def test_actions_are_bounded_in_float32_with_the_gradient_of_tanh() -> None:
    unbounded = torch.tensor([[0.5], [50.0]]).bfloat16().requires_grad_()
    actions = Deterministic(unbounded).actions
    assert actions.dtype == torch.float32
    assert actions.flatten().tolist() == [pytest.approx(math.tanh(0.5)), 1.0]
    actions.sum().backward()
    assert unbounded.grad is not None
    assert unbounded.grad.flatten().tolist() == [pytest.approx(1 - math.tanh(0.5) ** 2, rel=1e-2), 0.0]
