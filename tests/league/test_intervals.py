"""Confidence intervals of win rates and of mean returns."""

from __future__ import annotations

import numpy as np
import pytest

from srlhpc.league.intervals import normal, wilson


def test_wilson_interval_is_the_textbook_one() -> None:
    # Newcombe 1998 (Statistics in Medicine 17), table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    found = wilson(np.array([81, 15, 0, 1]), np.array([263, 148, 20, 29]))
    assert found.low.round(4).tolist() == [0.2553, 0.0624, 0.0, 0.0061]
    assert found.high.round(4).tolist() == [0.3662, 0.1605, 0.1611, 0.1718]


def test_all_games_won_is_not_certainty() -> None:
    found = wilson(10.0, 10)
    assert (float(found.low), float(found.high)) == (pytest.approx(0.7225, abs=1e-4), 1.0)


def test_nothing_is_known_without_games() -> None:
    assert [float(end) for end in wilson(0.0, 0)] == [0.0, 1.0]
    assert [float(end) for end in normal(np.nan, np.nan, 0)] == [-np.inf, np.inf]
    assert [float(end) for end in normal(2.0, np.nan, 1)] == [-np.inf, np.inf]


def test_interval_of_a_mean_has_1_96_standard_errors() -> None:
    found = normal(3.0, 4.0, 100)
    assert [float(end) for end in found] == pytest.approx([3.0 - 0.391993, 3.0 + 0.391993], abs=1e-6)


def test_results_of_plus_and_minus_1_are_known_to_a_tenth_after_100_games_and_to_a_thirtieth_after_1000() -> None:
    errors = [float(normal(0.0, 1.0, games).high) / 1.959964 for games in (100, 1000)]
    assert errors == pytest.approx([0.1, 0.0316], abs=1e-4)


def test_intervals_cover_the_truth_about_as_often_as_promised() -> None:
    random = np.random.default_rng(0)
    truth = random.uniform(0.1, 0.9, 2000)
    rates = wilson(random.binomial(40, truth), np.full(2000, 40))
    assert np.mean((rates.low <= truth) & (rates.high >= truth)) == pytest.approx(0.95, abs=0.015)
    returns = random.normal(3.0, 2.0, (2000, 40))
    means = normal(returns.mean(axis=1), returns.var(axis=1, ddof=1), np.full(2000, 40))
    assert np.mean((means.low <= 3.0) & (means.high >= 3.0)) == pytest.approx(0.95, abs=0.02)
