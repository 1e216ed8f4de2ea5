"""Adam on a flat vector against torch's own."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from srlhpc.algorithms.flat_adam import FlatAdam


def _network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_steps_are_those_of_torchs_fused_adam(weight_decay: float) -> None:
    ours, theirs = _network(), _network()
    flat = FlatAdam(ours, epsilon=1e-5, weight_decay=weight_decay)
    reference = torch.optim.Adam(theirs.parameters(), eps=1e-5, weight_decay=weight_decay, fused=True)
    inputs = torch.randn(4, 16, 5)
    for number, rows in enumerate(inputs):
        rate = 0.01 / (number + 1)
        flat.gradients.zero_()
        ours(rows).square().mean().backward()
        flat.step(rate, torch.tensor(0.0), None)
        reference.zero_grad()
        theirs(rows).square().mean().backward()
        reference.param_groups[0]["lr"] = rate
        reference.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=0.0, atol=0.0)
    assert flat.state()["adam.step"].item() == 4.0


def test_step_of_a_large_norm_is_scaled_down_to_the_maximum() -> None:
    network = nn.Linear(2, 1, bias=False)
    flat = FlatAdam(network, epsilon=1.0)
    flat.gradients.copy_(torch.tensor([3.0, 4.0]))
    flat.step(0.1, gradient_norm=torch.tensor(5.0), max_gradient_norm=0.5)
    torch.testing.assert_close(flat.gradients, torch.tensor([0.3, 0.4]))


def test_moments_of_what_has_no_gradient_any_more_end_at_zero() -> None:
    flat = FlatAdam(nn.Linear(16, 1, bias=False), epsilon=1e-5)
    flat.gradients.fill_(1.0)
    flat.step(0.1, torch.tensor(1.0), None)
    flat.gradients.zero_()
    tiny = torch.finfo(torch.float32).tiny
    for _ in range(1000):
        flat.step(0.1, torch.tensor(0.0), None)
        moment = flat.state()["adam.exp_avg"].abs()
        assert not ((moment > 0) & (moment < tiny)).any()
    # 0.1 x 0.9^1000 is below float32's numbers of full precision, and would stay there.
    assert not moment.any()
    assert flat.state()["adam.exp_avg_sq"].all()


def test_restore_brings_back_parameters_and_moments() -> None:
    network = _network()
    flat = FlatAdam(network, epsilon=1e-5)
    before = flat.snapshot()
    flat.gradients.fill_(1.0)
    flat.step(0.1, torch.tensor(1.0), None)
    flat.restore(before)
    torch.testing.assert_close(torch.cat([p.reshape(-1) for p in network.parameters()]), before.parameters)
    assert all(not tensor.any() for tensor in flat.state().values())


def test_twins_move_the_same_parameters_by_moments_of_their_own() -> None:
    network, alone = _network(), _network()
    flat, reference = FlatAdam(network, epsilon=1e-5), FlatAdam(alone, epsilon=1e-8)
    twin = flat.twin(epsilon=1e-8)
    for optimizer in (twin, reference):
        optimizer.gradients.fill_(0.5)
        optimizer.step(0.1, torch.tensor(0.0), None)
    assert torch.equal(flat.parameters, reference.parameters)
    assert all(map(torch.equal, twin.state().values(), reference.state().values()))
    assert not any(tensor.any() for tensor in flat.state().values())
    flat.step(0.1, torch.tensor(0.0), None)
    assert torch.equal(next(network.parameters()).flatten(), twin.parameters[:35])
    assert twin.state()["adam.step"].item() == 1.0


def test_use_loads_no_compiler_of_torch() -> None:
    program = (
        "import sys, torch; from torch import nn; from srlhpc.algorithms.flat_adam import FlatAdam\n"
        "flat = FlatAdam(nn.Linear(2, 2), epsilon=1e-5); flat.step(0.1, torch.tensor(1.0), 0.5)\n"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
