"""Tables of results: counts, scores, moments, sides, merges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srlhpc.league.payoffs import PayoffTable

GAMES = [[1.0, -1.0], [-1.0, 1.0], [0.5, 0.5], [3.0, 0.0]]


def played(rows: str, columns: str, games: dict[str, list[list[float]]]) -> PayoffTable:
    """A table of players with names of one letter; `ab` are the games of a against b."""
    table = PayoffTable.empty(rows, columns)
    for (row, column), returns in games.items():
        table.add(row, column, np.array(returns))
    return table


def assert_same(one: PayoffTable, two: PayoffTable) -> None:
    assert (one.rows, one.columns) == (two.rows, two.columns)
    for name in ("counts", "wins", "losses"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    for name in ("means", "deviations"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-9)


def test_greater_return_wins_and_equal_ones_are_half() -> None:
    table = played("ab", "cd", {"ac": GAMES})
    assert (table.wins[0, 0], table.losses[0, 0], table.draws[0, 0]) == (2, 1, 1)
    assert (table.scores[0, 0], table.win_rates[0, 0]) == (2.5, 0.625)


def test_mean_and_variance_of_both_sides_are_kept() -> None:
    table = played("a", "b", {"ab": GAMES})
    assert table.mean_returns[:, 0, 0].tolist() == [0.875, 0.125]
    np.testing.assert_allclose(table.variances[:, 0, 0], np.var(GAMES, axis=0, ddof=1))


def test_pairing_without_games_has_no_rate_no_mean_and_no_variance() -> None:
    table = played("a", "bc", {"ab": GAMES[:1]})
    assert math.isnan(table.win_rates[0, 1])
    assert np.isnan(table.mean_returns[:, 0, 1]).all()
    assert np.isnan(table.variances).all()


def test_return_that_is_no_number_is_refused_and_nothing_added() -> None:
    table = played("a", "b", {"ab": GAMES})
    with pytest.raises(ValueError, match="returns of a against b are not all finite"):
        table.add("a", "b", np.array([[1.0, 0.0], [math.nan, 0.0]]))
    assert table.counts[0, 0] == 4
    assert np.isfinite(table.means).all()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_games_may_come_in_any_portions(portions: list[int], seed: int) -> None:
    returns = 1000.0 + np.random.default_rng(seed).normal(size=(sum(portions), 2))
    table = PayoffTable.empty("a", "b")
    for portion in np.split(returns, np.cumsum(portions)[:-1]):
        table.add("a", "b", portion)
    assert_same(table, played("a", "b", {"ab": returns.tolist()} if len(returns) else {}))


def test_merged_tables_have_the_games_and_the_players_of_both() -> None:
    one = played("ab", "c", {"ac": GAMES[:2], "bc": GAMES})
    two = played("da", "ce", {"ac": GAMES[2:], "de": GAMES[1:]})
    whole = played("abd", "ce", {"ac": GAMES, "bc": GAMES, "de": GAMES[1:]})
    assert_same(one.merged(two), whole)


def test_merging_changes_neither_table() -> None:
    one, two = played("a", "b", {"ab": GAMES}), played("a", "b", {"ab": GAMES})
    one.merged(two).add("a", "b", np.array(GAMES))
    assert_same(one, two)


def test_table_without_sides_has_each_game_from_both_views() -> None:
    table = played("ab", "ab", {"ab": GAMES, "ba": [[5.0, -5.0]]}).without_sides()
    assert table.counts.tolist() == [[0, 5], [5, 0]]
    assert (table.wins[0, 1], table.wins[1, 0], table.draws[0, 1]) == (2, 2, 1)
    assert (table.scores + table.scores.T)[0, 1] == 5
    assert table.mean_returns[0, 0, 1] == pytest.approx((0.875 * 4 - 5.0) / 5)
    assert table.mean_returns[1, 1, 0] == pytest.approx(table.mean_returns[0, 0, 1])
