"""Ratings by maximum likelihood on the Elo scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from srlhpc.league.ratings import bradley_terry, expected_score

Array = NDArray[np.float64]


def drawn(ratings: Array, games: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Scores and games of players with known ratings, each pairing played so often."""
    chances = np.array([[expected_score(one, other) for other in ratings] for one in ratings])
    upper = np.triu(random.binomial(games, chances), 1)
    scores = (upper + np.tril(games - upper.T, -1)).astype(float)
    return scores, games * (1.0 - np.eye(len(ratings)))


def test_player_of_1600_beats_one_of_1500_in_64_percent_and_wins_11_5_points_by_it() -> None:
    expected = expected_score(1600.0, 1500.0)
    assert expected == pytest.approx(0.6401, abs=1e-4)
    assert 1600.0 + 32.0 * (1.0 - expected) == pytest.approx(1611.5, abs=0.05)


def test_rating_explains_the_win_rate_of_two_players() -> None:
    scores, games = np.array([[0.0, 6401.0], [3599.0, 0.0]]), np.array([[0.0, 10000.0], [10000.0, 0.0]])
    found = bradley_terry(scores, games)
    assert found.values.tolist() == pytest.approx([50.0, -50.0], abs=0.05)
    # Binomial: standard error of the log-odds 1 / sqrt(n p (1 - p)), half of it for each around the mean.
    error = 400 / np.log(10) / np.sqrt(10000 * 0.6401 * 0.3599) / 2
    assert (found.high - found.values).tolist() == pytest.approx([1.96 * error] * 2, rel=1e-3)


def test_anchor_has_0_and_others_their_distance_to_it() -> None:
    scores, games = drawn(np.array([0.0, 100.0, 300.0]), 200, np.random.default_rng(1))
    centred, anchored = bradley_terry(scores, games), bradley_terry(scores, games, anchor=1)
    assert centred.values.mean() == pytest.approx(0.0, abs=1e-9)
    assert (anchored.low[1], anchored.values[1], anchored.high[1]) == (0.0, 0.0, 0.0)
    np.testing.assert_allclose(np.diff(anchored.values), np.diff(centred.values))


def test_undefeated_player_is_finite_and_the_more_games_the_better() -> None:
    few, many = (
        bradley_terry(np.array([[0.0, n], [0.0, 0.0]]), np.array([[0.0, n], [n, 0.0]])) for n in (10.0, 1000.0)
    )
    assert 100 < few.values[0] < many.values[0] < 2000
    assert np.isfinite([*few.low, *few.high, *many.low, *many.high]).all()


def test_player_without_games_has_the_mean_and_the_widest_interval() -> None:
    scores, games = np.zeros((3, 3)), np.zeros((3, 3))
    scores[0, 1], games[0, 1], games[1, 0] = 20.0, 20.0, 20.0
    found = bradley_terry(scores, games)
    assert found.values[2] == pytest.approx(0.0, abs=1e-6)
    assert np.argmax(found.high - found.low) == 2


def test_cycle_is_hidden_by_equal_ratings() -> None:
    scores = np.array([[0.0, 0.0, 50.0], [50.0, 0.0, 0.0], [0.0, 50.0, 0.0]])
    assert bradley_terry(scores, 50 * (1 - np.eye(3))).values.tolist() == pytest.approx([0.0] * 3, abs=1e-6)


def test_games_against_oneself_count_for_nothing() -> None:
    scores, games = drawn(np.array([0.0, 200.0]), 50, np.random.default_rng(2))
    found = bradley_terry(scores + 100 * np.eye(2), games + 200 * np.eye(2))
    np.testing.assert_array_equal(found.values, bradley_terry(scores, games).values)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), order=st.permutations(range(4)), games=st.sampled_from([1, 3, 1000]))
def test_order_of_players_does_not_matter(seed: int, order: list[int], games: int) -> None:
    scores, played = drawn(np.array([-900.0, 0.0, 50.0, 800.0]), games, np.random.default_rng(seed))
    found, other = bradley_terry(scores, played), bradley_terry(scores[order][:, order], played[order][:, order])
    np.testing.assert_allclose(other.values, found.values[order], atol=1e-4)
    np.testing.assert_allclose(other.high, found.high[order], atol=1e-4)


def test_intervals_cover_the_truth_about_as_often_as_promised() -> None:
    truth, random = np.array([-150.0, -50.0, 0.0, 200.0]), np.random.default_rng(3)
    covered = []
    for _ in range(300):
        found = bradley_terry(*drawn(truth, 30, random))
        covered.append((found.low <= truth) & (truth <= found.high))
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)
