"""What all meta-solvers must do, and the worked numbers of each."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srlhpc.errors import UserError
from srlhpc.league.game import Game, Mixtures, nash_conv, symmetric, values
from srlhpc.league.meta_solvers import alpha_rank, nash, regret_matching, uniform
from tests.league.matrix_games import ROCK_COUNTS_TWICE, ROCK_PAPER_SCISSORS

SOLVERS = [uniform, nash, regret_matching, alpha_rank]
ZERO_SUM = [nash, regret_matching]
"""Those that find an equilibrium of a zero-sum game."""
seeds = st.integers(0, 2**32 - 1)


def zero_sum(seed: int, rows: int = 3, columns: int = 4) -> Game:
    payoffs = np.random.default_rng(seed).normal(size=(rows, columns))
    return Game(payoffs, -payoffs)


def solved(solver: ModuleType, game: Game) -> Mixtures:
    found: Mixtures = solver.solve(game)
    return found


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("game", [symmetric(ROCK_COUNTS_TWICE), zero_sum(1), zero_sum(2, 1, 1), zero_sum(3, 1, 3)])
def test_mixtures_are_chances_of_all_strategies(solver: ModuleType, game: Game) -> None:
    mixtures = solved(solver, game)
    assert (*map(len, mixtures),) == game.row.shape
    for mixture in mixtures:
        assert mixture.min() >= 0
        assert mixture.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_rock_paper_scissors_is_played_uniformly(solver: ModuleType) -> None:
    for mixture in solved(solver, symmetric(ROCK_PAPER_SCISSORS)):
        assert mixture.tolist() == pytest.approx([1 / 3] * 3, abs=1e-6)


@pytest.mark.parametrize(("solver", "tolerance"), [(nash, 1e-6), (regret_matching, 0.01)])
def test_rock_that_counts_twice_is_played_by_both_sides_in_a_quarter(solver: ModuleType, tolerance: float) -> None:
    game = symmetric(ROCK_COUNTS_TWICE)
    mixtures = solved(solver, game)
    for mixture in mixtures:
        assert mixture.tolist() == pytest.approx([0.25, 0.5, 0.25], abs=tolerance)
    assert values(game, mixtures) == pytest.approx((0.0, 0.0), abs=tolerance)


@pytest.mark.parametrize(("solver", "tolerance"), [(nash, 1e-6), (regret_matching, 0.05)])
@pytest.mark.parametrize("seed", range(5))
def test_zero_sum_game_is_solved(solver: ModuleType, tolerance: float, seed: int) -> None:
    game = zero_sum(seed, 4, 6)
    assert nash_conv(game, solved(solver, game)) < tolerance


def test_means_that_are_not_quite_zero_sum_are_antisymmetrised() -> None:
    random = np.random.default_rng(0)
    noisy = symmetric(ROCK_COUNTS_TWICE + random.normal(0, 0.001, (3, 3)))
    row, column = nash.solve(noisy)
    assert row.tolist() == column.tolist() == pytest.approx([0.25, 0.5, 0.25], abs=0.002)
    unequal = Game(ROCK_COUNTS_TWICE + 0.01, -ROCK_COUNTS_TWICE + random.normal(0, 0.001, (3, 3)))
    assert nash.solve(unequal).row.tolist() == pytest.approx([0.25, 0.5, 0.25], abs=0.002)


@pytest.mark.parametrize("column", [[[1.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [0.0, 1.0]]])
def test_game_that_is_not_zero_sum_is_refused_by_nash(column: list[list[float]]) -> None:
    """Battle of the sexes, where the solution of (row - column) / 2 has NashConv 2, and a game of common interest."""
    with pytest.raises(UserError, match=r"get together varies by [34], with payoffs in a range of 2; take regret_m"):
        nash.solve(Game(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array(column)))


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_nash_conv_is_at_most_what_both_sides_together_vary_by(seed: int) -> None:
    game = zero_sum(seed)
    together = np.random.default_rng(seed).uniform(0.0, 0.09 * np.ptp(game.row), game.row.shape)
    mixed = Game(game.row + together, game.column)
    assert nash_conv(mixed, nash.solve(mixed)) <= np.ptp(together) + 1e-6


def test_game_whose_payoffs_are_all_equal_is_zero_sum_for_all_rounding() -> None:
    payoffs = np.array([[0.1, 0.1], [0.1, 0.1 + 1e-16]])
    assert nash.solve(Game(payoffs, -payoffs.T)).row.sum() == pytest.approx(1.0)


def test_value_of_kuhn_poker_is_a_loss_of_an_eighteenth() -> None:
    """Its undominated strategies (Kuhn 1950): the first player bets a jack and calls a queen or not, the second
    calls a queen and bluffs a jack or not; a king always bets or calls, and a first player's king may lie in wait."""
    game = _kuhn()
    assert values(game, nash.solve(game))[0] == pytest.approx(-1 / 18)


def _kuhn() -> Game:
    first = [(jack, queen, king) for jack in (0, 1) for queen in (0, 1) for king in (0, 1)]
    second = [(jack, queen) for jack in (0, 1) for queen in (0, 1)]
    payoffs = np.array([[_kuhn_mean(one, other) for other in second] for one in first])
    return Game(payoffs, -payoffs)


def _kuhn_mean(first: tuple[int, int, int], second: tuple[int, int]) -> float:
    deals = [(mine, theirs) for mine in range(3) for theirs in range(3) if mine != theirs]
    return sum(_kuhn_payoff(mine, theirs, first, second) for mine, theirs in deals) / len(deals)


def _kuhn_payoff(mine: int, theirs: int, first: tuple[int, int, int], second: tuple[int, int]) -> int:
    better = 1 if mine > theirs else -1
    bets = (first[0], 0, first[2])[mine]
    if bets:
        return 2 * better if (0, second[1], 1)[theirs] else 1
    if not (second[0], 0, 1)[theirs]:
        return better
    return 2 * better if (0, first[1], 1)[mine] else -1


@settings(max_examples=20, deadline=None)
@given(seed=seeds, shift=st.floats(-10, 10), scale=st.floats(1e-3, 1e3))
@pytest.mark.parametrize("solver", [nash, alpha_rank])
def test_unit_and_zero_of_payoffs_do_not_matter(solver: ModuleType, seed: int, shift: float, scale: float) -> None:
    game = zero_sum(seed)
    moved = Game(game.row * scale + shift, game.column * scale + 2 * shift)
    # A random game has one equilibrium.
    for mixture, other in zip(solved(solver, game), solved(solver, moved), strict=True):
        assert other == pytest.approx(mixture, abs=1e-5)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, order=st.permutations(range(4)))
@pytest.mark.parametrize("solver", [nash, alpha_rank])
def test_order_of_players_does_not_matter_to_a_solution(solver: ModuleType, seed: int, order: list[int]) -> None:
    payoffs = zero_sum(seed, 4, 4).row
    payoffs = payoffs - payoffs.T
    found, other = (solved(solver, symmetric(table)) for table in (payoffs, payoffs[np.ix_(order, order)]))
    assert other.row == pytest.approx(found.row[order], abs=1e-5)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, twice=st.integers(0, 2))
def test_player_that_is_there_twice_gains_nothing(seed: int, twice: int) -> None:
    game = zero_sum(seed)
    rows = [0, 1, 2, twice]
    doubled = Game(game.row[rows], game.column[rows])
    found, again = nash.solve(game), nash.solve(doubled)
    assert values(doubled, again) == pytest.approx(values(game, found), abs=1e-6)
    together = again.row[:3].copy()
    together[twice] += again.row[3]
    assert together == pytest.approx(found.row, abs=1e-5)


def test_alpha_rank_leaves_the_one_who_loses_to_all() -> None:
    better = np.pad(ROCK_PAPER_SCISSORS, ((0, 1), (0, 1)))
    better[3, :3], better[:3, 3] = -1.0, 1.0
    row, column = alpha_rank.solve(symmetric(better))
    assert row.tolist() == column.tolist()
    assert row[:3] == pytest.approx(np.full(3, row[0]))
    # Reached from each of the three with a third of 0.01, left with 0.99.
    assert row[3] == pytest.approx(1 / 298)


def test_alpha_rank_of_a_chain_is_its_stationary_distribution() -> None:
    # Two strategies, the second beats the first: leaves it with chance 0.01, is reached with 0.99.
    row, _ = alpha_rank.solve(symmetric(np.array([[0.0, -1.0], [1.0, 0.0]])))
    assert row.tolist() == pytest.approx([0.01, 0.99])


def test_alpha_rank_of_two_populations_goes_round_in_matching_pennies() -> None:
    pennies = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for mixture in alpha_rank.solve(Game(pennies, -pennies)):
        assert mixture.tolist() == pytest.approx([0.5, 0.5])


def test_alpha_rank_stays_at_the_equilibrium_of_a_game_that_has_a_dominant_one() -> None:
    dilemma = symmetric(np.array([[3.0, 0.0], [5.0, 1.0]]))
    two = Game(dilemma.row, dilemma.column + 0.25 * np.array([[0.0, 1.0], [1.0, 0.0]]))
    for mixtures in (alpha_rank.solve(dilemma), alpha_rank.solve(two)):
        assert mixtures.row[1] > 0.98


def test_alpha_rank_refuses_pairs_that_fill_the_memory_but_not_as_many_players_of_a_symmetric_game() -> None:
    payoffs = zero_sum(1, 71, 71).row
    with pytest.raises(UserError, match=r"would need 5,041 states for a game of 71 x 71 .*without_sides"):
        alpha_rank.solve(Game(payoffs, -payoffs))
    assert alpha_rank.solve(symmetric(payoffs)).row.sum() == pytest.approx(1.0)


def test_nash_without_scipy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(UserError, match=r"nash needs scipy, .*pip install 'srlhpc\[league\]', or take regret_matching"):
        nash.solve(symmetric(ROCK_PAPER_SCISSORS))
