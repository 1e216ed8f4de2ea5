"""V-trace by worked numbers, at its fixed point, and with lambda."""

from __future__ import annotations

import pytest
import torch

from srlhpc.rl.returns import vtrace
from tests.rl.test_returns import column, consistent, flags, random_fragment

REWARDS, VALUES = column(1.0, 0.0, 2.0, -1.0, 1.0), column(0.5, 1.0, -0.5, 2.0, 0.3)
NEXT_VALUES, RATIOS = column(1.0, -0.5, 4.0, 0.3, 1.5), column(2.0, 0.5, 1.5, 0.8, 1.2)
END, NO_END = flags(0, 0, 1, 0, 0), flags(0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("ratios", "terminated", "truncated", "targets", "advantages"),
    [
        (RATIOS, NO_END, END, (3.718, 3.02, 5.6, 1.292, 2.35), (3.218, 2.02, 6.1, -0.708, 2.05)),
        (RATIOS, END, NO_END, (2.26, 1.4, 2.0, 1.292, 2.35), (1.76, 0.4, 2.5, -0.708, 2.05)),
        (torch.ones(5, 1), NO_END, END, (5.536, 5.04, 5.6, 1.115, 2.35), (5.036, 4.04, 6.1, -0.885, 2.05)),
    ],
    ids=["truncated", "terminated", "on-policy: n-step returns"],
)
def test_worked_numbers(
    ratios: torch.Tensor,
    terminated: torch.Tensor,
    truncated: torch.Tensor,
    targets: tuple[float, ...],
    advantages: tuple[float, ...],
) -> None:
    found = vtrace(ratios.log(), REWARDS, VALUES, NEXT_VALUES, terminated, truncated, gamma=0.9)
    torch.testing.assert_close(found.targets, column(*targets), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.advantages, column(*advantages), rtol=1e-4, atol=1e-4)


def test_rho_decides_whose_value_is_learnt() -> None:
    # Two arms, mu = (.5, .5), pi = (.9, .1), rewards 1 and 0: the value of pi is .9, that of min(mu, pi) is .8333.
    ratios = torch.tensor([[0.9, 0.1]]) / 0.5
    ends = torch.ones(1, 2, dtype=torch.bool)
    for rho_clip, fixed_point in ((1.0, 1 / 1.2), (2.0, 0.9)):
        value = torch.zeros(1, 2)
        for _ in range(200):
            found = vtrace(
                ratios.log(), torch.tensor([[1.0, 0.0]]), value, value, ends, ~ends, gamma=0.9, rho_clip=rho_clip
            )
            value = value + 0.1 * (found.targets - value).mean()
        assert value[0, 0].item() == pytest.approx(fixed_point, abs=1e-4)


def test_lambda_weighs_what_comes_later() -> None:
    rewards, values, next_values, terminated, truncated = fragment = consistent(random_fragment())
    log_ratios = torch.randn(rewards.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = vtrace(log_ratios, *fragment, gamma=0.9, lambda_=0.7)
    ratios, corrections = log_ratios.exp().clamp(max=1.0), found.targets - values
    stops = terminated | truncated
    for t in range(len(rewards)):
        later = torch.zeros_like(rewards[0]) if t + 1 == len(rewards) else corrections[t + 1] * ~stops[t]
        errors = rewards[t] + 0.9 * next_values[t] * ~terminated[t] - values[t]
        torch.testing.assert_close(corrections[t], ratios[t] * (errors + 0.9 * 0.7 * later))
        # lambda v + (1 - lambda) V of the successor.
        torch.testing.assert_close(found.advantages[t], ratios[t] * (errors + 0.9 * 0.7 * later))


def test_policys_ratio_has_a_bound_of_its_own() -> None:
    fragment = (REWARDS, VALUES, NEXT_VALUES, NO_END, END)
    plain, wide = (vtrace(RATIOS.log(), *fragment, gamma=0.9, policy_rho_clip=bound) for bound in (1.0, 1.5))
    assert torch.equal(plain.targets, wide.targets)
    expected = plain.advantages / RATIOS.clamp(max=1.0) * RATIOS.clamp(max=1.5)
    torch.testing.assert_close(wide.advantages, expected)
