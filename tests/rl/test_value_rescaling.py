from __future__ import annotations

import numpy as np
import pytest
import torch

from srlhpc.rl.td import n_step
from srlhpc.rl.value_rescaling import rescale, unscale


@pytest.mark.parametrize(
    ("x", "h"),
    [(0.5, 0.225245), (3.0, 1.003), (10.0, 2.326625), (100.0, 9.149876), (1000.0, 31.638584), (-3.0, -1.003)],
)
def test_returns_are_rescaled_with_epsilon_outside_of_the_sign(x: float, h: float) -> None:
    assert float(rescale(np.float64(x))) == pytest.approx(h, abs=1e-6)
    assert rescale(torch.tensor(x, dtype=torch.float64)).item() == pytest.approx(h, abs=1e-6)


@pytest.mark.parametrize(("y", "inverse"), [(1.0, 2.988057), (5.0, 34.586162), (-2.0, -7.952349)])
def test_rescaled_returns_are_unscaled(y: float, inverse: float) -> None:
    assert float(unscale(np.float64(y))) == pytest.approx(inverse, abs=1e-6)
    assert unscale(torch.tensor(y, dtype=torch.float64)).item() == pytest.approx(inverse, abs=1e-6)


def test_one_undoes_the_other_near_zero_and_far_away() -> None:
    x = torch.cat([-torch.logspace(-4, 6, 50, dtype=torch.float64), torch.logspace(-4, 6, 50, dtype=torch.float64)])
    torch.testing.assert_close(unscale(rescale(x)), x, rtol=1e-9, atol=1e-12)
    assert unscale(rescale(torch.zeros(1, dtype=torch.float64))).tolist() == [0.0]


def test_target_of_three_rewards_and_a_rescaled_value() -> None:
    rewards = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    never = torch.zeros(3, 1, dtype=torch.bool)
    steps = n_step(rewards, never, never, gamma=0.9, n=3)
    inner = steps.sums[0] + steps.discounts[0] * unscale(torch.tensor([5.0], dtype=torch.float64))
    assert inner.item() == pytest.approx(30.443312, abs=1e-6)
    assert rescale(inner).item() == pytest.approx(4.637877, abs=1e-6)
