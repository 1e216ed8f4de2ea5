"""Regret matching: an equilibrium of a zero-sum game nearly, by play; elsewhere a coarse correlated one's marginals."""

from __future__ import annotations

import numpy as np

from srlhpc.league.game import Game, Mixtures
from srlhpc.league.meta_solvers import uniform
from srlhpc.league.payoffs import FloatArray


def solve(game: Game, *, iterations: int = 10_000) -> Mixtures:
    """Mean mixtures of both sides, who play each strategy in proportion to its regret (Hart and Mas-Colell 2000).

    Regret of a strategy is what it would have got more than what was played, over all iterations; who regrets nothing
    plays uniformly. NashConv of a zero-sum game falls as 1 / sqrt(iterations).

    Args:
        game: of two sides.
        iterations: of simultaneous play.
    """
    now = uniform.solve(game)
    row_total, column_total = np.zeros_like(now.row), np.zeros_like(now.column)
    row_regrets, column_regrets = np.zeros_like(now.row), np.zeros_like(now.column)
    for _ in range(iterations):
        row_total += now.row
        column_total += now.column
        row_gains, column_gains = game.row @ now.column, now.row @ game.column
        row_regrets += row_gains - now.row @ row_gains
        column_regrets += column_gains - column_gains @ now.column
        now = Mixtures(_matched(row_regrets), _matched(column_regrets))
    return Mixtures(row_total / iterations, column_total / iterations)


def _matched(regrets: FloatArray) -> FloatArray:
    positive = np.maximum(regrets, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(regrets), 1.0 / len(regrets))
