"""One step of several optimisers, over one trainer or two."""

from __future__ import annotations

from collections.abc import Generator

import pytest
import torch
from torch import Tensor, nn

from srlhpc.algorithms.algorithm import Reducer
from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.algorithms.gradient_step import gradient_step
from tests.algorithms.collecting import OwnSum, SharedSum


def layers() -> tuple[nn.Linear, nn.Linear]:
    torch.manual_seed(0)
    return nn.Linear(3, 4), nn.Linear(4, 1)


def loss(first: nn.Linear, second: nn.Linear, rows: Tensor) -> Tensor:
    return 0.5 * second(torch.tanh(first(rows))).square().sum()


def step(
    total: Tensor, count: float, *optimizers: FlatAdam, reducer: Reducer | None = None, most: float | None = None
) -> Generator[None, None, Tensor]:
    return gradient_step(
        total, count, *optimizers, reducer=reducer or OwnSum(), learning_rate=0.1, max_gradient_norm=most
    )


def finished(generator: Generator[None, None, Tensor]) -> Tensor:
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            checks: Tensor = stop.value
            return checks


@pytest.mark.parametrize("most", [None, 1e-3])
def test_two_optimizers_step_as_one_of_all_their_parameters(most: float | None) -> None:
    rows = torch.randn(8, 3)
    both = layers()
    adam = FlatAdam(nn.Sequential(*both), epsilon=1e-3)
    expected = finished(step(loss(*both, rows), 8.0, adam, most=most))
    parts = layers()
    adams = [FlatAdam(part, epsilon=1e-3) for part in parts]
    found = finished(step(loss(*parts, rows), 8.0, *adams, most=most))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.cat([adam.parameters for adam in adams]), adam.parameters)
    assert found[0].item() == pytest.approx(loss(*layers(), rows).item() / 8)


def test_two_trainers_step_as_one_with_the_records_of_both() -> None:
    rows = torch.randn(8, 3)
    alone = layers()
    expected = finished(step(loss(*alone, rows), 8.0, *(FlatAdam(part, epsilon=1e-3) for part in alone)))
    shared = SharedSum(2)
    pairs = [layers(), layers()]
    steps = [
        step(loss(*pair, share), 8.0, *(FlatAdam(part, epsilon=1e-3) for part in pair), reducer=shared)
        for pair, share in zip(pairs, (rows[:3], rows[3:]), strict=True)
    ]
    next(steps[0])
    found = [finished(steps[1]), finished(steps[0])]
    torch.testing.assert_close(found, [expected, expected])
    assert len(shared.sizes) == 1
    torch.testing.assert_close(pairs[0][0].weight, alone[0].weight)
    assert torch.equal(pairs[0][0].weight, pairs[1][0].weight)


def test_nothing_moves_without_a_valid_record() -> None:
    parts = layers()
    adams = [FlatAdam(part, epsilon=1e-3) for part in parts]
    finished(step(loss(*parts, torch.zeros(0, 3)), 1.0, *adams))
    before = [adam.snapshot() for adam in adams]
    finished(step(loss(*parts, torch.zeros(0, 3)), 0.0, *adams))
    for adam, earlier in zip(adams, before, strict=True):
        assert torch.equal(adam.parameters, earlier.parameters)
        assert all(map(torch.equal, adam.state().values(), earlier.state.values()))
