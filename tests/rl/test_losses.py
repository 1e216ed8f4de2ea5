from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from srlhpc.rl.losses import clipped_surrogate, clipped_value_loss, explained_variance, value_loss, variance

ALL = torch.ones(4, dtype=torch.bool)


def surrogate_by_definition(ratios: list[float], advantages: list[float], clip: float) -> float:
    return -sum(min(r * a, max(1 - clip, min(1 + clip, r)) * a) for r, a in zip(ratios, advantages, strict=True))


def test_surrogate_equals_the_sum_of_the_paper() -> None:
    ratios, advantages = [0.5, 0.5, 2.0, 2.0], [1.0, -1.0, 1.0, -1.0]
    found = clipped_surrogate(
        torch.tensor(ratios).log(), torch.zeros(4), torch.tensor(advantages), ALL, clip_ratio=0.25
    )
    # 0.5, -0.75, 1.25, -2
    assert found.loss.item() == pytest.approx(surrogate_by_definition(ratios, advantages, 0.25))
    assert found.loss.item() == pytest.approx(1.0)
    assert found.clipped.item() == 4
    assert found.max_deviation.item() == pytest.approx(1.0)


def test_surrogate_with_equal_policies_has_the_policy_gradient_and_no_divergence() -> None:
    log_probs = torch.tensor([-1.0, -2.0, -3.0, -4.0], requires_grad=True)
    advantages = torch.tensor([1.0, -2.0, 3.0, -4.0])
    found = clipped_surrogate(log_probs, log_probs.detach(), advantages, ALL, clip_ratio=0.2)
    found.loss.backward()
    assert log_probs.grad is not None
    assert torch.equal(log_probs.grad, -advantages)
    assert (found.kl.item(), found.clipped.item(), found.max_deviation.item()) == (0.0, 0, 0.0)


def test_surrogate_has_the_gradient_of_its_definition() -> None:
    log_ratios = torch.tensor([-0.5, -0.1, 0.0, 0.1, 0.5]).repeat(2).requires_grad_()
    advantages = torch.tensor([2.0] * 5 + [-2.0] * 5)
    valid = torch.ones(10, dtype=torch.bool)
    found = clipped_surrogate(log_ratios, torch.zeros(10), advantages, valid, clip_ratio=0.25)
    ratios = log_ratios.exp()
    defined = -torch.minimum(ratios * advantages, ratios.clamp(0.75, 1.25) * advantages).sum()
    (gradient,) = torch.autograd.grad(3 * found.loss, log_ratios)
    torch.testing.assert_close(gradient, torch.autograd.grad(3 * defined, log_ratios)[0])


def test_surrogate_gains_nothing_outside_the_clip_range() -> None:
    log_probs = torch.tensor([2.0, -2.0]).log1p().nan_to_num(-1.0).requires_grad_()
    found = clipped_surrogate(log_probs, torch.zeros(2), torch.tensor([1.0, -1.0]), ALL[:2], clip_ratio=0.2)
    found.loss.backward()
    assert log_probs.grad is not None
    assert log_probs.grad.tolist() == [0.0, 0.0]


def test_kl_estimate_is_k3() -> None:
    found = clipped_surrogate(torch.tensor([math.log(2.0)]), torch.zeros(1), torch.ones(1), ALL[:1], clip_ratio=0.2)
    assert found.kl.item() == pytest.approx(2 - 1 - math.log(2.0))


@pytest.mark.parametrize("rubbish", [float("nan"), float("inf"), -1e9, 1e9])
def test_invalid_entries_reach_no_sum_and_no_gradient(rubbish: float) -> None:
    valid = torch.tensor([True, False])
    log_probs = torch.tensor([-1.0, -1.0], requires_grad=True)
    values = torch.tensor([1.0, 1.0], requires_grad=True)
    bad = torch.tensor([0.5, rubbish])
    policy = clipped_surrogate(log_probs, bad, bad, valid, clip_ratio=0.2)
    losses = [policy.loss, value_loss(values, bad, valid), clipped_value_loss(values, bad, bad, valid, value_clip=0.1)]
    sum(losses, torch.zeros(())).backward()
    for sums in (*losses, policy.kl, policy.max_deviation):
        assert math.isfinite(sums.item())
    for tensor in (log_probs, values):
        assert tensor.grad is not None
        assert math.isfinite(tensor.grad[0].item())
        assert tensor.grad[1].item() == 0.0


def test_value_loss_is_half_the_sum_of_squares() -> None:
    assert value_loss(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0]), ALL[:2]).item() == 0.5 * (4 + 9)


def test_value_loss_has_the_error_as_its_gradient() -> None:
    values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    valid = torch.tensor([True, True, False])
    (gradient,) = torch.autograd.grad(2 * value_loss(values, torch.tensor([4.0, 0.5, 9.0]), valid), values)
    assert gradient.tolist() == [-6.0, 3.0, 0.0]


def clipped(value: float, old: float, target: float) -> Tensor:
    arrays = [torch.tensor([number]) for number in (value, old, target)]
    return clipped_value_loss(*arrays, ALL[:1], value_clip=0.5)


def test_clipped_value_loss_takes_the_worse_of_both() -> None:
    assert clipped(2.0, 0.0, 2.0).item() == 0.5 * 1.5**2  # would be perfect, but moved too far
    assert clipped(0.25, 0.0, 1.0).item() == 0.5 * 0.75**2  # inside the range: the plain loss
    assert clipped(-2.0, 0.0, 1.0).item() == 0.5 * 3.0**2  # moved away: the plain loss is worse


def test_variance_from_sums_equals_the_variance_of_the_entries() -> None:
    entries = torch.tensor([1.0, 2.0, 4.0, 8.0])
    found = variance(4, entries.sum().item(), entries.square().sum().item())
    assert found == entries.var(correction=0).item()
    assert variance(0, 0.0, 0.0) == 0.0


def test_explained_variance_of_perfect_constant_and_missing_predictions() -> None:
    assert explained_variance(2.0, 0.0) == 1.0
    assert explained_variance(2.0, 2.0) == 0.0
    assert explained_variance(0.0, 1.0) == 0.0
