"""First priorities are the errors of what acting told."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from srlhpc.algorithms import dqn
from srlhpc.algorithms.dqn.priorities import first_priorities
from srlhpc.rl.value_rescaling import rescale, unscale


def fields(rewards: list[float], q_taken: list[float], q_max: list[float], **flags: list[int]) -> dict[str, Any]:
    """One window; flags name the records where they are true."""
    found: dict[str, Any] = {
        "rewards": np.array(rewards, np.float32)[:, None],
        "out.q_taken": np.array(q_taken, np.float32)[:, None],
        "out.q_max": np.array(q_max, np.float32)[:, None],
    }
    for name in ("terminated", "truncated", "cut", "valid"):
        records = flags.get(name, list(range(len(rewards))) if name == "valid" else [])
        found[name] = np.isin(np.arange(len(rewards)), records)[:, None]
    return found


def priority(window: dict[str, Any], **keys: Any) -> float:
    found = first_priorities(dqn.Settings.model_validate({"kind": "dqn", "gamma": 0.5, **keys}), window)
    assert found.dtype == np.float32
    assert found.shape == (1,)
    return float(found[0])


def test_sum_of_three_steps_takes_the_last_value_that_acting_told() -> None:
    window = fields([1.0, 2.0, 4.0], [3.0, 0.0, 0.0], [9.0, 9.0, 8.0])
    assert priority(window, n_steps=3) == abs(1 + 0.5 * 2 + 0.25 * 8 - 3)


def test_termination_within_the_sum_needs_no_value() -> None:
    window = fields([1.0, 2.0, 4.0], [3.5, 0.0, 0.0], [9.0, 9.0, 8.0], terminated=[1])
    assert priority(window, n_steps=3) == 1.5


def test_truncation_takes_the_value_of_the_episodes_last_observation() -> None:
    window = fields([1.0, 2.0, 4.0], [3.0, 0.0, 0.0], [9.0, 6.0, 8.0], truncated=[0])
    assert priority(window, n_steps=3) == abs(1 + 0.5 * 6 - 3)


def test_sum_that_reaches_a_cut_ends_at_the_last_value_before_it() -> None:
    window = fields([1.0, 2.0, 0.0], [3.0, 0.0, 0.0], [9.0, 6.0, 6.0], cut=[1], valid=[0, 1])
    assert priority(window, n_steps=3) == abs(1 + 0.5 * 6 - 3)


def test_priority_mixes_the_errors_of_trained_records_that_are_valid() -> None:
    window = fields([1.0, 2.0, 4.0, 8.0], [2.0, 5.0, 7.0, 0.0], [0.0, 4.0, 8.0, 6.0], valid=[0, 2, 3])
    errors = [abs(1 + 0.5 * 2 + 0.25 * 8 - 2), abs(4 + 0.5 * 6 - 7)]
    assert priority(window, n_steps=2, priority_max_share=0.5) == 0.5 * max(errors) + 0.5 * sum(errors) / 2


def test_rescaled_values_are_unscaled_within_the_sum() -> None:
    window = fields([1.0, 2.0], [0.5, 0.0], [0.0, 3.0])
    expected = abs(rescale(1 + 0.5 * unscale(np.array([3.0]))) - 0.5)[0]
    assert priority(window, n_steps=2, rescale=True) == pytest.approx(expected, rel=1e-6)


def test_priorities_are_free_of_torch() -> None:
    code = "import sys, srlhpc.algorithms.dqn.priorities; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
