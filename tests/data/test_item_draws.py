"""With what probability items are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from srlhpc.data.item_draws import Draws
from srlhpc.specs.replay import PrioritizedDraw, UniformDraw

PRIORITIES = np.array([1, 2, 4, 0.5], np.float32)


def draws(priorities: np.ndarray, *, alpha: float = 0.6, share: float = 0.0) -> Draws:
    made = Draws(PrioritizedDraw(alpha=alpha, uniform_share=share), priorities.size, np.random.default_rng(0))
    made.add(np.arange(priorities.size), priorities)
    return made


def probabilities(made: Draws, count: int = 1000) -> dict[int, float]:
    items, values = made.draw(count)
    return dict(sorted(zip(items.tolist(), values.tolist(), strict=True)))


def test_probability_is_the_share_of_the_priority_to_the_power_of_alpha() -> None:
    found = probabilities(draws(PRIORITIES))
    assert list(found.values()) == pytest.approx([0.182720, 0.276951, 0.419779, 0.120550], abs=5e-7)


def test_uniform_share_is_mixed_in() -> None:
    found = probabilities(draws(PRIORITIES, share=0.1))
    assert list(found.values()) == pytest.approx([0.189448, 0.274256, 0.402801, 0.133495], abs=5e-7)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_items_come_as_often_as_their_probability_says(share: float) -> None:
    made = draws(np.array([1, 2, 4, 0], np.float32), alpha=1.0, share=share)
    count = 100_000
    items, _ = made.draw(count)
    expected = (1 - share) * np.array([1, 2, 4, 0]) / 7 + share / 4
    deviation = np.sqrt(share * count)
    assert np.abs(np.bincount(items, minlength=4) - count * expected).max() <= 2 + 4 * deviation


def test_priority_of_zero_is_never_drawn_whatever_alpha_is() -> None:
    assert probabilities(draws(np.array([0, 3, 0, 5], np.float32), alpha=0.0)) == {1: 0.5, 3: 0.5}


def test_items_whose_priorities_are_all_zero_are_drawn_uniformly() -> None:
    assert probabilities(draws(np.zeros(4, np.float32))) == {0: 0.25, 1: 0.25, 2: 0.25, 3: 0.25}


def test_slices_of_equal_mass_give_one_item_each() -> None:
    items, _ = draws(np.ones(8, np.float32)).draw(8)
    assert items.tolist() == list(range(8))


def test_uniform_draws_have_equal_probabilities_and_keep_no_priorities() -> None:
    made = Draws(UniformDraw(), 10, np.random.default_rng(0))
    made.add(np.array([2, 5, 7]), None)
    made.prioritize(np.array([2]), np.array([9.0]))
    made.remove(np.array([5, 6]))
    assert probabilities(made) == {2: 0.5, 7: 0.5}
    assert not made.uses_priorities
    assert len(made) == 2
