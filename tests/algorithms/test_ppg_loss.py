"""The auxiliary phase's loss by worked numbers, and by its definition."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from srlhpc.algorithms.ppg.loss import auxiliary_loss
from srlhpc.policies.phasic import PhasicEvaluated
from srlhpc.rl.distributions import Categorical, DiagonalGaussian, Distribution

OLD, NEW = ([0.7, 0.2, 0.1], [0.5, 0.3, 0.2])


def one_record(beta: float = 1.0, c: float = 1.0) -> list[float]:
    """Total and sums of pi_old = .7, .2, .1, pi = .5, .3, .2, V_aux = 1.2, V = 1.5, V_targ = 2."""
    said = PhasicEvaluated(Categorical(torch.tensor([NEW]).log()), torch.tensor([1.5]), torch.tensor([1.2]))
    old = Categorical(torch.tensor([OLD]).log()).numbers()
    valid = torch.ones(1, dtype=torch.bool)
    loss = auxiliary_loss(said, old, torch.tensor([2.0]), valid, kl_coefficient=beta, true_value_coefficient=c)
    return [loss.total.item(), *loss.sums.tolist()]


def test_worked_numbers() -> None:
    assert one_record() == pytest.approx([0.5301228, 0.32, 0.125, 0.0851228], abs=1e-6)
    assert one_record(beta=2.0, c=0.5)[0] == pytest.approx(0.32 + 2 * 0.0851228 + 0.0625, abs=1e-6)


def evaluated(numbers: Tensor) -> PhasicEvaluated:
    """Of `[N, 6]`: two values, and the means or logits of four."""
    distribution: Distribution = Categorical(numbers[:, 2:])
    return PhasicEvaluated(distribution, numbers[:, 0], numbers[:, 1])


def test_gradients_are_those_of_the_valid_records_alone() -> None:
    numbers, targets = torch.randn(6, 6), torch.randn(6)
    old = evaluated(torch.randn(6, 6)).distribution.numbers()
    valid = torch.tensor([True, False, True, True, False, True])
    gradients = []
    for rubbish in (0.0, float("nan"), float("inf")):
        inputs = numbers.clone().requires_grad_()
        wrong = torch.where(valid, targets, rubbish)
        loss = auxiliary_loss(evaluated(inputs), old, wrong, valid, kl_coefficient=0.3, true_value_coefficient=2.0)
        gradients += torch.autograd.grad(loss.total, inputs)
        assert torch.isfinite(loss.sums).all()
    assert torch.equal(gradients[0], gradients[1])
    assert torch.equal(gradients[0], gradients[2])
    assert not gradients[0][~valid].any()
    # The derivatives by the two values, and by the logits: those of the divergence are pi - pi_old.
    errors = (numbers[:, :2] - targets.unsqueeze(1))[valid]
    torch.testing.assert_close(gradients[0][valid][:, :2], errors * torch.tensor([2.0, 1.0]))
    differences = torch.softmax(numbers[:, 2:], -1) - old.exp()
    torch.testing.assert_close(gradients[0][valid][:, 2:], 0.3 * differences[valid])


def test_divergence_of_a_gaussian_moves_its_deviations_too() -> None:
    log_stds = torch.tensor([0.1, -0.2], requires_grad=True)
    now = DiagonalGaussian(torch.zeros(3, 2), log_stds)
    old = DiagonalGaussian(torch.zeros(3, 2), torch.zeros(2)).numbers()
    valid = torch.tensor([True, True, False])
    said = PhasicEvaluated(now, torch.zeros(3), torch.zeros(3))
    loss = auxiliary_loss(said, old, torch.zeros(3), valid, kl_coefficient=1.0, true_value_coefficient=1.0)
    (gradient,) = torch.autograd.grad(loss.total, log_stds)
    # KL(N(0, 1) || N(0, s^2)) = log s + 1 / (2 s^2) - 1/2, once for each of two records.
    torch.testing.assert_close(gradient, 2 * (1 - (-2 * log_stds.detach()).exp()))
