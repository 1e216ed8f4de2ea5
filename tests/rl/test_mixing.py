"""QMIX's mixture, by hand and by its promise."""

from __future__ import annotations

import pytest
import torch

from srlhpc.rl.mixing import monotonic


def test_mixture_and_gradient_are_the_numbers_worked_out_by_hand() -> None:
    values = torch.tensor([1.0, -2.0], requires_grad=True)
    first, bias = torch.tensor([[0.5, -1.0], [2.0, 0.3]]), torch.tensor([0.1, -0.2])
    whole = monotonic(values, first, bias, torch.tensor([-1.0, 0.5]), torch.tensor(0.7))
    torch.autograd.backward(whole)
    assert whole.item() == pytest.approx(-0.1666267, abs=1e-6)
    assert values.grad is not None
    assert values.grad.tolist() == pytest.approx([0.5166866, 0.2167465], abs=1e-6)


def test_no_value_lowers_the_whole() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(50, *shape, generator=generator) for shape in ((3, 8), (8,), (8,), ())]
    values = torch.randn(50, 3, generator=generator)
    raised = values.unsqueeze(1) + 0.5 * torch.eye(3)
    before = monotonic(values, *weights)
    for agent in range(3):
        assert torch.all(monotonic(raised[:, agent], *weights) >= before)
