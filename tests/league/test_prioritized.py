"""Choice of opponents by win rate, with the worked numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from srlhpc.league.prioritized import OpponentScores, hard, variance

RATES = np.array([0.9, 0.5, 0.1])


@pytest.mark.parametrize(("power", "chances"), [(2.0, [0.0093, 0.2336, 0.7570]), (1.0, [0.0667, 0.3333, 0.6])])
def test_hard_opponents_are_met_more_often(power: float, chances: list[float]) -> None:
    assert hard(RATES, power=power).tolist() == pytest.approx(chances, abs=1e-4)


def test_variance_prefers_opponents_of_equal_strength() -> None:
    assert variance(RATES).tolist() == pytest.approx([0.2093, 0.5814, 0.2093], abs=1e-4)


def test_opponents_that_are_always_beaten_are_met_equally_often() -> None:
    assert hard(np.ones(4)).tolist() == [0.25] * 4
    assert variance(np.array([1.0, 0.0])).tolist() == [0.5, 0.5]
    assert hard(np.ones(0)).tolist() == []


@pytest.mark.parametrize("choice", [hard, variance])
def test_win_rate_that_is_no_number_is_refused(choice: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
    with pytest.raises(ValueError, match="a win rate is no finite number"):
        choice(np.array([0.9, np.nan, 0.1]))


def test_win_rate_begins_at_a_half_and_draws_count_half() -> None:
    scores = OpponentScores(decay=1.0)
    assert scores.win_rates([30, 60]).tolist() == [0.5, 0.5]
    scores.add(60, 1.0 + 0.5, games=2)
    # (1 win + half a draw + 1) / (2 games + 2)
    assert scores.win_rates([30, 60]).tolist() == [0.5, 0.625]


def test_old_games_fade_with_each_new_one_of_that_opponent() -> None:
    scores = OpponentScores(decay=0.5)
    scores.add(0, 1.0)
    scores.add(1, 1.0)
    scores.add(0, 0.0)
    # 0: a win that counts half and a loss; 1: a win.
    assert scores.win_rates([0, 1]) == pytest.approx([1.5 / 3.5, 2.0 / 3.0])


@pytest.mark.parametrize("decay", [0.9, 1.0])
def test_games_that_come_summed_fade_as_those_that_come_alone(decay: float) -> None:
    alone, summed = OpponentScores(decay=decay), OpponentScores(decay=decay)
    for scores in (alone, summed):
        scores.add(0, 1.0)
    for _ in range(4):
        alone.add(0, 0.5)
    summed.add(0, 2.0, games=4)
    summed.add(0, 0.0, games=0)
    assert summed.win_rates([0]) == pytest.approx(alone.win_rates([0]))


def test_scores_come_back_from_their_state_and_are_forgotten() -> None:
    scores, other = OpponentScores(decay=0.9), OpponentScores(decay=0.9)
    scores.add(5, 1.0, games=2)
    scores.add(7, 1.0)
    other.load_state(scores.save_state())
    assert other.win_rates([5, 7]).tolist() == scores.win_rates([5, 7]).tolist()
    other.forget([7, 9])
    assert other.win_rates([5, 7]).tolist() == [*scores.win_rates([5]).tolist(), 0.5]
