"""A target network follows what is trained and is never trained itself."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.algorithms.target_network import TargetNetwork


class Scaled(nn.Module):
    """Two layers with running moments between them."""

    scale: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(2))
        self.layers = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        rows = self.layers[0](rows) * self.scale
        result: torch.Tensor = self.layers[1](rows)
        return result


def made() -> tuple[Scaled, FlatAdam, TargetNetwork[Scaled]]:
    torch.manual_seed(0)
    online = Scaled()
    optimizer = FlatAdam(online, epsilon=1e-8)
    return online, optimizer, TargetNetwork(online, optimizer)


def test_following_thrice_gives_the_number_worked_out_by_hand() -> None:
    _, optimizer, target = made()
    target.parameters.fill_(1.0)
    optimizer.parameters.fill_(3.0)
    for _ in range(3):
        target.follow(0.005)
    torch.testing.assert_close(target.parameters, torch.full_like(target.parameters, 1.02985025))


def test_copy_is_the_online_network() -> None:
    online, optimizer, target = made()
    optimizer.parameters.add_(1.0)
    rows = torch.randn(4, 3)
    assert not torch.equal(target.module(rows), online(rows))
    target.copy()
    assert torch.equal(target.module(rows), online(rows))
    optimizer.parameters.add_(1.0)
    assert not torch.equal(target.module(rows), online(rows))


def test_what_nobody_trains_is_the_same_in_both() -> None:
    online = Scaled()
    online.layers[0].requires_grad_(False)
    optimizer = FlatAdam(online, epsilon=1e-8)
    target = TargetNetwork(online, optimizer)
    assert target.parameters.shape == (3,)
    assert target.module.layers[0].weight is online.layers[0].weight
    optimizer.parameters.add_(1.0)
    rows = torch.randn(4, 3)
    assert not torch.equal(target.module(rows), online(rows))
    target.copy()
    assert torch.equal(target.module(rows), online(rows))
    assert online.layers[1].weight.requires_grad


def test_target_gets_no_gradient() -> None:
    _, _, target = made()
    assert not target.module(torch.randn(4, 3)).requires_grad
    assert all(parameter.grad is None for parameter in target.module.parameters())


def test_running_statistics_are_those_of_the_online_network() -> None:
    online, _, target = made()
    online.scale.mul_(2.0)
    rows = torch.randn(4, 3)
    assert torch.equal(target.module(rows), online(rows))


def test_loaded_parameters_are_those_of_the_module() -> None:
    _, _, target = made()
    saved = target.parameters.clone()
    target.parameters.zero_()
    target.load(saved)
    assert torch.equal(target.module.layers[0].weight.flatten(), saved[:6])
    with pytest.raises(ValueError, match=r"target network has \[3\]"):
        target.load(torch.zeros(3))
