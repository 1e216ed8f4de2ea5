from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from srlhpc.specs.exploration import Epsilon, GaussianNoise, Ladder, UniformStart
from srlhpc.specs.schedule import LinearSchedule


def test_ladder_of_eight_columns_is_that_of_the_paper() -> None:
    found = Ladder().probabilities(np.arange(8), 8, steps=0)
    expected = [0.4, 0.16, 0.064, 0.0256, 0.01024, 0.004096, 0.001638, 0.000655]
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx(expected, rel=1e-3)


def test_a_single_column_has_the_base_of_the_ladder() -> None:
    assert Ladder(base=0.3).probabilities(np.arange(1), 1, steps=5).tolist() == pytest.approx([0.3])


def test_some_columns_have_the_rungs_of_their_numbers() -> None:
    whole = Ladder().probabilities(np.arange(8), 8, steps=0)
    assert Ladder().probabilities(np.array([6, 1]), 8, steps=9).tolist() == [whole[6], whole[1]]


def test_epsilon_follows_its_schedule_in_every_column() -> None:
    epsilon = Epsilon(value=LinearSchedule(start=1.0, end=0.5, steps=100))
    assert epsilon.probabilities(np.arange(3), 3, steps=50).tolist() == [0.75] * 3
    assert epsilon.probabilities(np.arange(3), 3, steps=1000).dtype == np.float32


@pytest.mark.parametrize("value", [1.5, LinearSchedule(start=1.0, end=-0.1, steps=10)])
def test_what_is_no_probability_is_refused(value: float | LinearSchedule) -> None:
    with pytest.raises(ValidationError, match="a probability lies between 0 and 1"):
        Epsilon(value=value)


def test_uniform_start_ends_at_its_steps_in_every_column() -> None:
    start = UniformStart(steps=100)
    before, after = (start.numbers(np.arange(3), 3, steps) for steps in (99, 100))
    assert before["uniform"].tolist() == [1.0] * 3
    assert after["uniform"].tolist() == [0.0] * 3
    assert before["noise"].tolist() == after["noise"].tolist() == [1.0] * 3
    assert {array.dtype for array in before.values()} == {np.dtype(np.float32)}


def test_uniform_start_of_no_steps_never_draws_uniformly() -> None:
    assert UniformStart(steps=0).numbers(np.arange(2), 2, 0)["uniform"].tolist() == [0.0, 0.0]


def test_uniform_start_acts_with_the_mode_in_evaluation() -> None:
    assert UniformStart().in_evaluation() == {"uniform": 0.0, "noise": 0.0}
    assert UniformStart(evaluation=1.0).in_evaluation() == {"uniform": 0.0, "noise": 1.0}


def test_gaussian_noise_follows_its_schedule_after_a_uniform_start_in_every_column() -> None:
    noise = GaussianNoise(std=LinearSchedule(start=0.5, end=0.1, steps=100), uniform_steps=50)
    before, after = (noise.numbers(np.arange(3), 3, steps) for steps in (49, 50))
    assert before["uniform"].tolist() == [1.0] * 3
    assert after["uniform"].tolist() == [0.0] * 3
    assert after["std"].tolist() == pytest.approx([0.3] * 3)
    assert {array.dtype for array in after.values()} == {np.dtype(np.float32)}


def test_evaluation_is_without_noise_unless_it_is_set() -> None:
    assert GaussianNoise().in_evaluation() == {"uniform": 0.0, "std": 0.0}
    assert GaussianNoise(evaluation=0.2).in_evaluation() == {"uniform": 0.0, "std": 0.2}


def test_negative_noise_is_refused() -> None:
    with pytest.raises(ValidationError, match="must not be negative"):
        GaussianNoise(std=-0.1)
