from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from srlhpc.rl.squashed_gaussian import SquashedGaussian, unsquashed_log_std

RANGE = (-5.0, 2.0)


def squashed(mean: float, std: float, entries: int = 1, dimensions: int = 1) -> SquashedGaussian:
    raw = unsquashed_log_std(math.log(std), RANGE)
    shape = (entries, dimensions)
    return SquashedGaussian(torch.full(shape, mean), torch.full(shape, raw), RANGE)


def by_autograd(means: Tensor, raw: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """The same draw from torch's own functions, in float64."""
    low, high = RANGE
    log_stds = low + 0.5 * (high - low) * (torch.tanh(raw) + 1)
    unbounded = means + log_stds.exp() * noise
    normal = torch.distributions.Normal(means, log_stds.exp()).log_prob(unbounded)
    return torch.tanh(unbounded), (normal - torch.log1p(-torch.tanh(unbounded).square())).sum(-1)


def test_log_density_is_the_number_worked_out_by_hand() -> None:
    # mean .5, standard deviation .3, u = .7
    drawn = squashed(0.5, 0.3).draw(torch.tensor([[0.2 / 0.3]]))
    assert drawn.actions.item() == pytest.approx(0.6043678, abs=1e-6)
    assert drawn.log_probs.item() == pytest.approx(0.5173525, abs=1e-6)
    normal = drawn.log_probs.item() + math.log(1 - drawn.actions.item() ** 2)
    assert normal == pytest.approx(0.0628120, abs=1e-6)


def test_log_density_in_a_wider_range_of_actions_is_less_by_the_log_of_its_scale() -> None:
    drawn = squashed(0.5, 0.3).draw(torch.tensor([[0.2 / 0.3]]))
    assert drawn.log_probs.item() - math.log((2.0 - -2.0) / 2) == pytest.approx(-0.1757947, abs=1e-6)


def test_density_integrates_to_one() -> None:
    noise = torch.linspace(-9, 9, 40_001).unsqueeze(-1)
    actions, log_probs = squashed(0.4, 0.8, len(noise)).draw(noise)
    assert torch.trapezoid(log_probs.double().exp(), actions[:, 0].double()).item() == pytest.approx(1.0, abs=1e-3)


def test_dimensions_are_independent() -> None:
    noise = torch.randn(5, 3)
    whole = squashed(0.2, 0.5, 5, 3).draw(noise)
    parts = [squashed(0.2, 0.5, 5).draw(noise[:, d : d + 1]) for d in range(3)]
    torch.testing.assert_close(whole.log_probs, sum(part.log_probs for part in parts))
    torch.testing.assert_close(whole.actions, torch.cat([part.actions for part in parts], dim=1))


def test_gradients_are_those_of_autograd() -> None:
    torch.manual_seed(0)
    means, raw = torch.randn(64, 3), torch.randn(64, 3)
    noise, by_action, by_log_prob = torch.randn(64, 3), torch.randn(64, 3), torch.randn(64)
    mine = [tensor.clone().requires_grad_() for tensor in (means, raw)]
    theirs = [tensor.double().requires_grad_() for tensor in (means, raw)]
    drawn = SquashedGaussian(mine[0], mine[1], RANGE).draw(noise)
    expected = by_autograd(theirs[0], theirs[1], noise.double())
    torch.testing.assert_close(drawn.actions.double(), expected[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(drawn.log_probs.double(), expected[1], rtol=1e-4, atol=1e-4)
    torch.autograd.backward([drawn.actions, drawn.log_probs], [by_action, by_log_prob])
    torch.autograd.backward(list(expected), [by_action.double(), by_log_prob.double()])
    for own, other in zip(mine, theirs, strict=True):
        assert own.grad is not None
        assert other.grad is not None
        torch.testing.assert_close(own.grad.double(), other.grad, rtol=1e-3, atol=1e-4)


def test_actions_at_the_bounds_have_finite_log_densities_and_gradients() -> None:
    means = torch.tensor([[30.0], [-30.0], [9.0]], requires_grad=True)
    drawn = SquashedGaussian(means, torch.zeros(3, 1), RANGE).draw(torch.ones(3, 1))
    assert drawn.actions.abs().tolist() == [[1.0], [1.0], [pytest.approx(1.0)]]
    # log(1 - tanh(u)^2) goes to 2 log 2 - 2 |u|.
    far = 2 * (30.0 + math.exp(-1.5)) - 2 * math.log(2.0) - 0.5 + 1.5 - 0.5 * math.log(2 * math.pi)
    assert drawn.log_probs[0].item() == pytest.approx(far, rel=1e-6)
    drawn.log_probs.sum().backward()
    assert means.grad is not None
    assert means.grad.flatten().tolist() == pytest.approx([2.0, -2.0, 2.0], abs=1e-5)


def test_entropy_is_estimated_by_minus_the_log_density() -> None:
    # of a narrow Gaussian: that of u, and the mean of log(1 - tanh(u)^2), which is about its value at the mean
    noise = torch.randn(200_000, 1, generator=torch.Generator().manual_seed(0))
    estimate = -squashed(0.3, 0.01, len(noise)).draw(noise).log_probs.mean().item()
    closed = 0.5 * math.log(2 * math.pi * math.e) + math.log(0.01) + math.log(1 - math.tanh(0.3) ** 2)
    assert estimate == pytest.approx(closed, abs=5e-3)


def test_mode_is_the_action_without_noise() -> None:
    distribution = squashed(0.7, 0.5, 2, 3)
    assert torch.equal(distribution.mode(), distribution.draw(torch.zeros(2, 3)).actions)


@pytest.mark.parametrize("raw", [-100.0, 0.0, 100.0])
def test_log_standard_deviations_stay_in_their_range(raw: float) -> None:
    log_stds = SquashedGaussian(torch.zeros(1, 2), torch.full((1, 2), raw), RANGE).log_stds
    assert log_stds.tolist() == [[pytest.approx(-1.5 + 3.5 * math.tanh(raw))] * 2]


def test_unsquashed_log_std_is_squashed_to_itself() -> None:
    raw = torch.full((1, 1), unsquashed_log_std(-2.5, RANGE))
    assert SquashedGaussian(torch.zeros(1, 1), raw, RANGE).log_stds.item() == pytest.approx(-2.5)


def test_computes_in_float32_from_bfloat16() -> None:
    drawn = SquashedGaussian(torch.zeros(2, 1).bfloat16(), torch.zeros(2, 1).bfloat16(), RANGE).draw(torch.ones(2, 1))
    assert (drawn.actions.dtype, drawn.log_probs.dtype) == (torch.float32, torch.float32)
