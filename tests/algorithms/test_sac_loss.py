"""Numbers of SAC worked out by hand."""

from __future__ import annotations

import pytest
import torch

from srlhpc.algorithms.sac.loss import actor_loss, soft_values, temperature_gradient
from srlhpc.rl.squashed_gaussian import SquashedGaussian, unsquashed_log_std
from srlhpc.rl.td import one_step

ALPHA = torch.tensor([0.2])


def test_targets_are_the_numbers_worked_out_by_hand() -> None:
    raw = unsquashed_log_std(torch.tensor(0.3).log().item(), (-5.0, 2.0))
    drawn = SquashedGaussian(torch.tensor([[0.5]]), torch.tensor([[raw]]), (-5.0, 2.0)).draw(torch.tensor([[2 / 3]]))
    log_probs = drawn.log_probs.expand(3)
    values = torch.tensor([[3.0, 3.0, 2.5], [2.5, 2.5, 3.0]])
    terminated = torch.tensor([False, True, False])
    soft = soft_values(values, log_probs, temperature=ALPHA)
    targets = one_step(torch.ones(3), terminated, soft, gamma=0.99)
    assert targets.tolist() == pytest.approx([3.3725642, 1.0, 3.3725642], abs=1e-6)


def test_temperature_gradient_is_the_number_worked_out_by_hand() -> None:
    assert temperature_gradient(0.2, 0.5173525, -1.0) == pytest.approx(0.0965295, abs=1e-7)


def test_temperature_gradient_is_that_of_its_loss() -> None:
    logarithm = torch.tensor(-1.3, dtype=torch.float64, requires_grad=True)
    log_probs = torch.randn(9, dtype=torch.float64)
    (logarithm.exp() * (-log_probs - -2.0)).mean().backward()
    assert logarithm.grad is not None
    expected = temperature_gradient(logarithm.exp().item(), log_probs.mean().item(), -2.0)
    assert logarithm.grad.item() == pytest.approx(expected)


def test_actor_loss_weighs_entropy_against_the_lesser_value() -> None:
    log_probs = torch.tensor([0.5, -1.0], requires_grad=True)
    values = torch.tensor([[1.0, 2.0], [3.0, -4.0]], requires_grad=True)
    loss = actor_loss(log_probs, values, torch.tensor([True, True]), temperature=ALPHA)
    assert loss.item() == pytest.approx(0.1 - 1.0 - 0.2 + 4.0)
    loss.backward()
    assert log_probs.grad is not None
    assert values.grad is not None
    assert log_probs.grad.tolist() == pytest.approx([0.2, 0.2])
    assert values.grad.tolist() == [[-1.0, 0.0], [0.0, -1.0]]


def test_invalid_records_reach_neither_the_actors_loss_nor_its_gradients() -> None:
    valid = torch.tensor([True, False])
    values = torch.tensor([[1.0, float("nan")], [2.0, float("inf")]], requires_grad=True)
    log_probs = torch.tensor([0.5, float("nan")], requires_grad=True)
    loss = actor_loss(log_probs, values, valid, temperature=ALPHA)
    assert loss.item() == pytest.approx(0.1 - 1.0)
    loss.backward()
    assert values.grad is not None
    assert values.grad[:, 1].tolist() == [0.0, 0.0]
    assert log_probs.grad is not None
    assert log_probs.grad[1].item() == 0.0
