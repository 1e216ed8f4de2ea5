"""Payoffs of two sides, best responses and NashConv, with the worked numbers of rock-paper-scissors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srlhpc.league.game import Game, Mixtures, best_responses, nash_conv, symmetric, values
from srlhpc.league.meta_solvers import alpha_rank, nash, uniform
from srlhpc.league.payoffs import PayoffTable
from tests.league.matrix_games import ROCK_PAPER_SCISSORS

RPS = symmetric(ROCK_PAPER_SCISSORS)


def both(*weights: float) -> Mixtures:
    """Both sides play that."""
    return Mixtures(np.array(weights), np.array(weights))


def restricted(strategies: list[int]) -> Game:
    return symmetric(ROCK_PAPER_SCISSORS[np.ix_(strategies, strategies)])


def lifted(mixtures: Mixtures, strategies: list[int]) -> Mixtures:
    """Mixtures over some strategies, which may be there twice, as such over all three."""
    row, column = (np.bincount(strategies, weights, minlength=3) for weights in mixtures)
    return Mixtures(row, column)


@pytest.mark.parametrize("one", range(3))
@pytest.mark.parametrize("other", range(3))
def test_every_pure_pair_of_rock_paper_scissors_has_nash_conv_2(one: int, other: int) -> None:
    assert nash_conv(RPS, Mixtures(np.eye(3)[one], np.eye(3)[other])) == 2.0


def test_half_rock_is_exploitable_by_a_quarter() -> None:
    assert nash_conv(RPS, both(0.5, 0.25, 0.25)) / 2 == 0.25


def test_uniform_play_is_the_equilibrium() -> None:
    assert nash_conv(RPS, uniform.solve(RPS)) == pytest.approx(0.0, abs=1e-12)
    assert values(RPS, uniform.solve(RPS)) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_best_responses_to_the_last_one_go_round() -> None:
    now, seen = both(1.0, 0.0, 0.0), []
    for _ in range(6):
        seen.append("RPS"[int(now.row.argmax())])
        now = Mixtures(*(np.eye(3)[best] for best in best_responses(RPS, now)))
    assert "".join(seen) == "RPSRPS"


def test_double_oracle_finds_all_three_strategies() -> None:
    strategies, found = [0], []
    for _ in range(3):
        mixtures = lifted(nash.solve(restricted(strategies)), strategies)
        found.append((list(strategies), round(nash_conv(RPS, mixtures), 6)))
        response, other = best_responses(RPS, mixtures)
        assert response == other
        strategies = sorted({*strategies, response})
    assert found == [([0], 2.0), ([0, 1], 2.0), ([0, 1, 2], 0.0)]


def test_fictitious_play_approaches_the_equilibrium_slowly() -> None:
    """Both at once respond to all that the other has played, from (R, R), ties to the first."""
    # Whole numbers, of which ties are exact; a best response is the same to any multiple.
    played, found = both(1.0, 0.0, 0.0), {}
    for rounds in range(1, 101):
        for counts, response in zip(played, best_responses(RPS, played), strict=True):
            counts[response] += 1.0
        found[rounds] = nash_conv(RPS, Mixtures(*(counts / counts.sum() for counts in played)))
    assert [found[rounds] for rounds in (1, 2, 3, 10, 100)] == pytest.approx([1, 0.667, 1, 0.364, 0.139], abs=5e-4)


def test_payoffs_that_are_missing_are_refused() -> None:
    with pytest.raises(ValueError, match="every pairing has to be played"):
        symmetric(np.array([[0.0, np.nan], [0.0, 0.0]]))
    with pytest.raises(ValueError, match="shapes"):
        Game(np.zeros((2, 3)), np.zeros((3, 2)))


def test_symmetry_is_seen_in_the_payoffs() -> None:
    general = np.array([[3.0, 0.0], [5.0, 1.0]])
    assert symmetric(general).is_symmetric
    assert RPS.is_symmetric
    assert not Game(general, -general).is_symmetric
    assert not Game(np.zeros((2, 3)), np.zeros((2, 3))).is_symmetric


def test_symmetry_is_seen_in_means_whatever_the_order_of_games() -> None:
    random = np.random.default_rng(0)
    table = PayoffTable.empty("abc", "abc")
    for number, (row, column) in enumerate(itertools.product("abc", repeat=2), 1):
        table.add(row, column, random.normal(size=(number, 2)))
    game = Game(*table.without_sides().mean_returns)
    # The two sides of a pairing were added in another order.
    assert (game.column != game.row.T).any()
    assert game.is_symmetric
    shares = alpha_rank.solve(game)
    assert shares.row.tolist() == alpha_rank.solve(symmetric(game.row)).row.tolist()
    assert not Game(game.row, game.column + 1e-3 * np.eye(3)).is_symmetric


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), shift=st.floats(-100, 100), scale=st.floats(0.01, 100))
def test_nash_conv_scales_with_payoffs_and_is_not_negative(seed: int, shift: float, scale: float) -> None:
    random = np.random.default_rng(seed)
    game = Game(*random.normal(size=(2, 3, 4)))
    mixtures = Mixtures(random.dirichlet(np.ones(3)), random.dirichlet(np.ones(4)))
    gain = nash_conv(game, mixtures)
    assert gain >= 0
    moved = Game(game.row * scale + shift, game.column * scale - shift)
    assert nash_conv(moved, mixtures) == pytest.approx(gain * scale, rel=1e-6, abs=1e-6)
