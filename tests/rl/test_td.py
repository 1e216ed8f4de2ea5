from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from srlhpc.rl.td import n_step, one_step, priorities

GAMMA = 0.9
REWARDS = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
BOOTSTRAPS = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]

Maker = Callable[[Any], Any]
KINDS = pytest.mark.parametrize("array", [np.array, torch.tensor], ids=["numpy", "torch"])


def flags(count: int, *true: int) -> list[list[bool]]:
    return [[t in true] for t in range(count)]


def targets(
    array: Maker, rewards: list[float], values: list[float], terminated: Any, stops: Any, *, n: int
) -> list[float]:
    """Targets of one column; `values[t]` is that of the observation after record t."""
    found = n_step(array([[reward] for reward in rewards]), array(terminated), array(stops), gamma=GAMMA, n=n)
    later = [values[t + int(length) - 1] for t, length in enumerate(found.lengths[:, 0])]
    return [float(s + d * v) for s, d, v in zip(found.sums[:, 0], found.discounts[:, 0], later, strict=True)]


@KINDS
def test_sums_of_three_steps_end_at_a_termination_and_at_the_windows_end(array: Maker) -> None:
    found = targets(array, REWARDS, BOOTSTRAPS, flags(6, 2), flags(6), n=3)
    assert found == pytest.approx([5.23, 4.7, 3, 57.1, 59, 60], abs=1e-4)


@KINDS
def test_truncation_ends_sums_and_keeps_the_value_that_follows(array: Maker) -> None:
    found = targets(array, REWARDS, BOOTSTRAPS, flags(6), flags(6, 2), n=3)
    assert found == pytest.approx([27.1, 29, 30, 57.1, 59, 60], abs=1e-4)


@KINDS
def test_targets_of_one_step_bootstrap_unless_terminated(array: Maker) -> None:
    found = one_step(array([0.5, 0.5]), array([False, True]), array([3.2, 3.2]), gamma=0.99)
    assert found.tolist() == pytest.approx([3.668, 0.5])


@KINDS
def test_one_step_is_the_reward_and_the_discounted_value_that_follows(array: Maker) -> None:
    found = targets(array, REWARDS, BOOTSTRAPS, flags(6, 3), flags(6, 1), n=1)
    assert found == pytest.approx([10, 20, 30, 4, 50, 60])


def recursion(rewards: Any, values: Any, terminated: Any, stops: Any, t: int, m: int) -> float:
    if terminated[t]:
        return float(rewards[t])
    if stops[t] or m == 1 or t == len(rewards) - 1:
        return float(rewards[t] + GAMMA * values[t])
    return float(rewards[t] + GAMMA * recursion(rewards, values, terminated, stops, t + 1, m - 1))


@KINDS
@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), records=st.integers(1, 8), n=st.integers(1, 10))
def test_sums_equal_the_recursion(array: Maker, seed: int, records: int, n: int) -> None:
    random = np.random.default_rng(seed)
    rewards, values = random.normal(size=(2, records))
    terminated, stops = random.random((2, records)) < 0.25
    found = targets(array, list(rewards), list(values), terminated[:, None], stops[:, None], n=n)
    assert found == pytest.approx(
        [recursion(rewards, values, terminated, stops, t, n) for t in range(records)], abs=1e-5
    )


@KINDS
def test_priority_mixes_the_greatest_and_the_mean_error_of_valid_records(array: Maker) -> None:
    errors = array([[0.2, 0.2, 7.0], [-1.0, 1.0, 7.0], [0.5, 0.5, 7.0], [0.1, -0.1, 7.0]])
    valid = array([[True, True, False], [True, True, False], [True, False, False], [True, True, False]])
    found = priorities(errors, valid, max_share=0.9)
    assert [float(one) for one in found] == pytest.approx([0.945, 0.9 + 0.1 * 1.3 / 3, 0.0])


def test_priority_of_one_record_is_its_error() -> None:
    errors: Tensor = torch.tensor([[0.25, -4.0]])
    assert priorities(errors, torch.ones(1, 2, dtype=torch.bool), max_share=0.9).tolist() == pytest.approx([0.25, 4.0])
