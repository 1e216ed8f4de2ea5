"""What a learning side did against versions."""

from __future__ import annotations

import numpy as np

from srlhpc.league.past_results import PastResults


def test_table_grows_with_the_versions_that_are_met() -> None:
    results = PastResults(decay=1.0)
    assert (results.games, results.win_rate) == (0, None)
    results.add(np.array([4, 2, 4]), np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]]))
    assert results.table.columns == ("2", "4")
    assert results.table.counts.tolist() == [[1, 2]]
    assert (results.games, results.win_rate) == (3, 0.5)
    assert results.scores.win_rates([2, 4, 6]).tolist() == [0.5, 0.5, 0.5]


def test_forgotten_version_counts_as_even_but_its_games_stay() -> None:
    results = PastResults(decay=1.0)
    results.add(np.array([2]), np.array([[1.0, 0.0]]))
    results.forget([2, 8])
    assert results.scores.win_rates([2]).tolist() == [0.5]
    assert results.games == 1


def test_results_come_back_from_their_state() -> None:
    one, other = PastResults(decay=0.9), PastResults(decay=0.9)
    one.add(np.array([4, 2, 4]), np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]]))
    other.load_state(one.save_state())
    for results in (one, other):
        results.add(np.array([2, 9]), np.array([[1.0, 0.0], [3.0, 0.0]]))
    assert one.table.columns == other.table.columns
    assert one.table.mean_returns.tolist() == other.table.mean_returns.tolist()
    assert one.scores.win_rates([2, 4, 9]).tolist() == other.scores.win_rates([2, 4, 9]).tolist()
