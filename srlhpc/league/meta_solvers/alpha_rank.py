"""α-rank: how long evolution stays at each strategy; one answer also for cycles and where there are several equilibria.

Omidshafiei et al. 2019 (arXiv:1903.01373) in the limit of strong selection (Rowland et al. 2019, arXiv:1909.09849,
section 2), with rare steps downhill so that the answer is unique.
"""

from __future__ import annotations

import numpy as np

from srlhpc.errors import UserError
from srlhpc.league.game import Game, Mixtures
from srlhpc.league.payoffs import FloatArray

_EQUAL = 1e-9
"""Payoffs that differ by less than this part of their range are equal."""

_MOST_STATES = 5_000
"""Pairs of a game that is not symmetric: so many take 400 MB, and twice as many eight times as long."""


def solve(game: Game, *, downhill: float = 0.01) -> Mixtures:
    """Shares of time that a Markov chain of single deviations spends at each strategy.

    A deviation, drawn uniformly, is followed with probability 1 - downhill where it gains, downhill where it loses, and
    one half where it does neither. In a symmetric game one population goes from a strategy to another by what the two
    get against each other; else it goes from pair to pair, where one side deviates, and the shares are the marginals.
    Work grows with the third power of the number of states: R of a symmetric game, R C of others.

    Args:
        game: of two sides.
        downhill: chance to follow a deviation that loses, in (0, 0.5).

    Raises:
        UserError: a game that is not symmetric has more than 5,000 pairs.
    """
    if game.is_symmetric:
        shares = _stationary(_of_one_population(game.row, downhill))
        return Mixtures(shares, shares.copy())
    rows, columns = game.row.shape
    if rows * columns > _MOST_STATES:
        raise UserError(
            f"the meta-solver alpha_rank would need {rows * columns:,} states for a game of {rows} x {columns} "
            f"strategies that is not symmetric, and takes at most {_MOST_STATES:,}; if both sides are alike, take the "
            "symmetric game of the means of both (PayoffTable.without_sides), else regret_matching"
        )
    shares = _stationary(_of_two_populations(game, downhill)).reshape(rows, columns)
    return Mixtures(shares.sum(axis=1), shares.sum(axis=0))


def _of_one_population(payoffs: FloatArray, downhill: float) -> FloatArray:
    """Chances `[R, R]` to go from strategy i to j; the diagonal, to stay, matters to nobody and is 0."""
    strategies = len(payoffs)
    chances = _followed(payoffs.T - payoffs, float(np.ptp(payoffs)), downhill) / max(strategies - 1, 1)
    np.fill_diagonal(chances, 0.0)
    return chances


def _of_two_populations(game: Game, downhill: float) -> FloatArray:
    """Chances `[R C, R C]` to go from pair to pair; the diagonal is 0."""
    rows, columns = game.row.shape
    chances = np.zeros((rows, columns, rows, columns))
    deviations = max(rows + columns - 2, 1)
    for column in range(columns):
        # What the first side gains by going from strategy i to j against this column.
        gains = game.row[None, :, column] - game.row[:, None, column]
        chances[:, column, :, column] = _followed(gains, float(np.ptp(game.row)), downhill) / deviations
    for row in range(rows):
        gains = game.column[row, None, :] - game.column[row, :, None]
        chances[row, :, row, :] = _followed(gains, float(np.ptp(game.column)), downhill) / deviations
    states = chances.reshape(rows * columns, rows * columns)
    np.fill_diagonal(states, 0.0)
    return states


def _followed(gains: FloatArray, span: float, downhill: float) -> FloatArray:
    equal = np.abs(gains) <= _EQUAL * span
    return np.where(equal, 0.5, np.where(gains > 0, 1.0 - downhill, downhill))


def _stationary(chances: FloatArray) -> FloatArray:
    """The stationary distribution of an irreducible chain, by elimination without subtractions.

    Grassmann, Taksar and Heyman 1985: exact to rounding also where states are left a million times less often than
    others.

    Args:
        chances: `[S, S]` to go from a state to another; the diagonal is not read.
    """
    chances, states = chances.copy(), len(chances)
    for last in range(states - 1, 0, -1):
        chances[:last, last] /= chances[last, :last].sum()
        chances[:last, :last] += np.outer(chances[:last, last], chances[last, :last])
    shares = np.ones(states)
    for state in range(1, states):
        shares[state] = shares[:state] @ chances[:state, state]
    shares /= shares.sum()
    return shares
