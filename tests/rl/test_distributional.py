from __future__ import annotations

import pytest
import torch

from srlhpc.rl.distributional import cross_entropy, project, quantile_huber_loss

SUPPORT = torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0])
MASS = torch.tensor([0.1, 0.2, 0.4, 0.2, 0.1])


def test_mass_between_atoms_is_shared_by_distance() -> None:
    found = project(MASS, 0.25 + 0.5 * SUPPORT, SUPPORT)
    torch.testing.assert_close(found, torch.tensor([0.0, 0.05, 0.45, 0.45, 0.05]))
    assert (found * SUPPORT).sum().item() == pytest.approx(0.25)


def test_mass_of_a_terminal_record_lies_around_its_reward() -> None:
    found = project(MASS, torch.full((5,), 0.3), SUPPORT)
    torch.testing.assert_close(found, torch.tensor([0.0, 0.0, 0.4, 0.6, 0.0]))


def test_mass_upon_an_atom_stays_and_mass_beyond_the_ends_goes_to_the_last() -> None:
    torch.testing.assert_close(project(MASS, SUPPORT, SUPPORT), MASS)
    torch.testing.assert_close(project(MASS, SUPPORT + 9, SUPPORT), torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0]))
    torch.testing.assert_close(project(MASS, SUPPORT - 9, SUPPORT), torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0]))


def test_projection_equals_the_sum_of_the_paper() -> None:
    generator = torch.Generator().manual_seed(0)
    mass = torch.rand(6, 5, generator=generator)
    mass /= mass.sum(-1, keepdim=True)
    returns = 3 * torch.randn(6, 5, generator=generator)
    distances = (returns.clamp(-1, 1).unsqueeze(-1) - SUPPORT).abs() / 0.5
    expected = ((1 - distances).clamp(0, 1) * mass.unsqueeze(-1)).sum(-2)
    torch.testing.assert_close(project(mass, returns, SUPPORT), expected)


def test_quantile_loss_by_hand() -> None:
    # Middles 1/4 and 3/4; errors 0.5, 2 and -1.5, 0; huber 0.125, 1.5 and 1, 0.
    loss = quantile_huber_loss(torch.tensor([0.0, 2.0]), torch.tensor([0.5, 2.0]))
    assert loss.item() == (0.25 * 0.125 + 0.25 * 1.5) / 2 + (0.25 * 1.0) / 2


def test_quantile_loss_is_least_at_the_quantiles() -> None:
    samples = torch.linspace(-3, 3, 1201)
    quantiles = torch.zeros(5, requires_grad=True)
    optimizer = torch.optim.SGD([quantiles], lr=0.2)
    for _ in range(400):
        optimizer.zero_grad()
        quantile_huber_loss(quantiles, samples, threshold=0.01).backward()
        optimizer.step()
    middles = torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9])
    torch.testing.assert_close(quantiles.detach(), torch.quantile(samples, middles), atol=0.05, rtol=0)


def test_cross_entropy_is_least_where_both_agree() -> None:
    logits = MASS.log().requires_grad_()
    loss = cross_entropy(MASS, torch.log_softmax(logits, -1))
    loss.backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.zeros(5), atol=1e-6, rtol=0)
    assert loss.item() == pytest.approx(-(MASS * MASS.log()).sum().item())
