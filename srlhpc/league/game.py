"""A game of two sides as a table of payoffs, and how far a pair of mixed strategies is from an equilibrium.

Letters: R strategies of the first side, C of the second. In a league strategies are players, and payoffs mean returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from srlhpc.league.payoffs import FloatArray

_ROUNDING = 1e-9
"""Payoffs that differ by less than this part of the greatest are equal: means of the same games that were added in
another order differ in their last bits."""


class Mixtures(NamedTuple):
    """How often each side plays each of its strategies: float64 `[R]` and `[C]`, each of sum 1."""

    row: FloatArray
    column: FloatArray


@dataclass(frozen=True)
class Game:
    """What both sides get for every pair of strategies."""

    row: FloatArray
    """`[R, C]`: payoffs of the first side."""
    column: FloatArray
    """`[R, C]`: payoffs of the second."""

    def __post_init__(self) -> None:
        """Raises ValueError where a payoff is missing."""
        if self.row.shape != self.column.shape:
            raise ValueError(f"payoffs of the two sides have the shapes {self.row.shape} and {self.column.shape}")
        if not (np.isfinite(self.row) & np.isfinite(self.column)).all():
            raise ValueError("a payoff is no finite number: every pairing has to be played")

    @property
    def is_symmetric(self) -> bool:
        """Whether both sides have the same strategies and it does not matter who is which, rounding aside.

        Means of games that were played apart on either side differ by chance, too: `PayoffTable.without_sides` has one
        mean of both.
        """
        return self.row.shape[0] == self.row.shape[1] and bool(
            (np.abs(self.column - self.row.T) <= self.rounding).all()
        )

    @property
    def rounding(self) -> float:
        """Payoffs that differ by no more are equal."""
        return _ROUNDING * float(np.abs([self.row, self.column]).max(initial=0.0))


def symmetric(payoffs: FloatArray) -> Game:
    """The game where it does not matter who is which side; `payoffs[i, j]` is what i gets against j."""
    return Game(payoffs, payoffs.T)


def best_responses(game: Game, mixtures: Mixtures) -> tuple[int, int]:
    """Each side's best strategy against the other's mixture, the first of equal ones."""
    return int(np.argmax(game.row @ mixtures.column)), int(np.argmax(mixtures.row @ game.column))


def values(game: Game, mixtures: Mixtures) -> tuple[float, float]:
    """What each side gets on average."""
    return float(mixtures.row @ game.row @ mixtures.column), float(mixtures.row @ game.column @ mixtures.column)


def nash_conv(game: Game, mixtures: Mixtures) -> float:
    """Σ_i max_a u_i(a, σ_-i) - u_i(σ): what both sides gain together by a best response of the table; 0 at equilibria.

    Lanctot et al. 2017 (arXiv:1711.00832). Half of it is the exploitability. Exact for this table; strategies that are
    not in it may gain more.
    """
    value = values(game, mixtures)
    return float((game.row @ mixtures.column).max() + (mixtures.row @ game.column).max() - sum(value))
