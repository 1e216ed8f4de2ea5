from __future__ import annotations

import pytest
import torch

from srlhpc.rl.critics import critic_errors, critic_loss


def test_critic_loss_is_half_the_weighted_squared_error_of_both() -> None:
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    errors = critic_errors(values, torch.tensor([2.0, 2.0]), torch.tensor([True, True]))
    assert critic_loss(errors, None).item() == pytest.approx(0.5 * (1 + 1 + 4))
    loss = critic_loss(errors, torch.tensor([1.0, 0.25]))
    assert loss.item() == pytest.approx(0.5 * (1 + 1 + 0.25 * 4))
    loss.backward()
    assert values.grad is not None
    assert values.grad.tolist() == [[-1.0, 0.0], [1.0, 0.5]]


def test_invalid_records_reach_neither_sums_nor_gradients() -> None:
    values = torch.tensor([[1.0, float("nan")], [2.0, float("inf")]], requires_grad=True)
    errors = critic_errors(values, torch.tensor([0.0, float("nan")]), torch.tensor([True, False]))
    loss = critic_loss(errors, torch.ones(2))
    assert loss.item() == pytest.approx(0.5 * (1 + 4))
    loss.backward()
    assert values.grad is not None
    assert values.grad[:, 1].tolist() == [0.0, 0.0]
