"""The gradient step of a rule, by itself."""

from __future__ import annotations

import torch
from torch import nn

from srlhpc.algorithms.objectives import Objective


def test_part_that_takes_no_gradient_stays_beside_what_is_trained() -> None:
    frozen, trained = nn.Linear(3, 4).requires_grad_(False), nn.Linear(4, 1)
    objective = Objective(None, nn.Sequential(frozen, trained), 0.1, 1e-8)
    inputs = torch.ones(2, 3)
    objective.differentiate(trained(frozen(inputs)).sum())
    expected = torch.cat([frozen(inputs).sum(0), torch.tensor([2.0])])
    torch.testing.assert_close(objective.optimizer.gradients, expected)
