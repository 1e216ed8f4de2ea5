"""What came of games between two sides, by who played which: counts, wins, mean and variance of returns.

Letters: R rows (players of the first side), C columns (players of the second), n games.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_ARRAYS = ("counts", "wins", "losses", "means", "deviations")


@dataclass(frozen=True, eq=False)
class PayoffTable:
    """Results of every pairing. The greater return of a game wins it; equal ones are a draw, which scores half."""

    rows: tuple[str, ...]
    """Players of the first side."""
    columns: tuple[str, ...]
    """Players of the second side."""
    counts: IntArray
    """`[R, C]`: games."""
    wins: IntArray
    """`[R, C]`: games that the row won."""
    losses: IntArray
    """`[R, C]`: games that the column won."""
    means: FloatArray
    """`[2, R, C]`: mean return of each side, 0 where there was no game."""
    deviations: FloatArray
    """`[2, R, C]`: sum of the squared deviations from it."""

    @classmethod
    def empty(cls, rows: Sequence[str], columns: Sequence[str]) -> PayoffTable:
        """A table without games."""
        shape = (len(rows), len(columns))
        counts, wins, losses = (np.zeros(shape, np.int64) for _ in range(3))
        return cls(tuple(rows), tuple(columns), counts, wins, losses, np.zeros((2, *shape)), np.zeros((2, *shape)))

    @property
    def draws(self) -> IntArray:
        """`[R, C]`: games that nobody won."""
        return self.counts - self.wins - self.losses

    @property
    def scores(self) -> FloatArray:
        """`[R, C]`: what the row scored in all games: 1 for a win, a half for a draw."""
        return self.wins + 0.5 * self.draws

    @property
    def win_rates(self) -> FloatArray:
        """`[R, C]`: what the row scored a game; NaN where there was none."""
        return np.where(self.counts > 0, self.scores / np.maximum(self.counts, 1), np.nan)

    @property
    def mean_returns(self) -> FloatArray:
        """`[2, R, C]`: mean return of each side; NaN where there was no game."""
        return np.where(self.counts > 0, self.means, np.nan)

    @property
    def variances(self) -> FloatArray:
        """`[2, R, C]`: unbiased variance of the returns of each side; NaN where there were less than two games."""
        return np.where(self.counts > 1, self.deviations / np.maximum(self.counts - 1, 1), np.nan)

    def add(self, row: str, column: str, returns: NDArray[np.floating[Any]]) -> None:
        """Adds games of one pairing.

        Args:
            row: who played the first side.
            column: who played the second.
            returns: `[n, 2]`: of both sides in each game.

        Raises:
            ValueError: a return is no finite number; nothing is added then.
        """
        if not np.isfinite(returns).all():
            raise ValueError(f"returns of {row} against {column} are not all finite numbers")
        if not len(returns):
            return
        at = self.rows.index(row), self.columns.index(column)
        of_side = (slice(None), *at)
        played = np.asarray(returns, np.float64)
        means = played.mean(axis=0)
        self.means[of_side], self.deviations[of_side] = _joined(
            (self.counts[at], self.means[of_side], self.deviations[of_side]),
            (len(played), means, np.square(played - means).sum(axis=0)),
        )
        self.counts[at] += len(played)
        self.wins[at] += np.count_nonzero(played[:, 0] > played[:, 1])
        self.losses[at] += np.count_nonzero(played[:, 0] < played[:, 1])

    def merged(self, other: PayoffTable) -> PayoffTable:
        """The games of both tables; it has the players of both, those of `other` that are new behind its own."""
        rows = tuple(dict.fromkeys((*self.rows, *other.rows)))
        columns = tuple(dict.fromkeys((*self.columns, *other.columns)))
        one, two = self._spread(rows, columns), other._spread(rows, columns)
        means, deviations = _joined((one.counts, one.means, one.deviations), (two.counts, two.means, two.deviations))
        return PayoffTable(
            *(rows, columns, one.counts + two.counts, one.wins + two.wins, one.losses + two.losses),
            *(means, deviations),
        )

    def only(self, rows: Sequence[str], columns: Sequence[str]) -> PayoffTable:
        """The games of some of the players."""
        found = PayoffTable.empty(rows, columns)
        places = np.ix_([self.rows.index(name) for name in rows], [self.columns.index(name) for name in columns])
        for name in _ARRAYS:
            getattr(found, name)[...] = getattr(self, name)[..., *places]
        return found

    def swapped(self) -> PayoffTable:
        """The same games, seen from the other side: rows are columns."""
        return PayoffTable(
            *(self.columns, self.rows, self.counts.T, self.losses.T, self.wins.T),
            *(np.transpose(of_sides[::-1], (0, 2, 1)) for of_sides in (self.means, self.deviations)),
        )

    def without_sides(self) -> PayoffTable:
        """What each player did against each other one, whichever side it played.

        A game of two players stands at both their places, from either's view; one against oneself counts twice.
        """
        return self.merged(self.swapped())

    def save_state(self) -> dict[str, FloatArray | IntArray]:
        """The games, without the players' names."""
        return {name: getattr(self, name).copy() for name in _ARRAYS}

    @classmethod
    def from_state(cls, rows: Sequence[str], columns: Sequence[str], state: Mapping[str, Any]) -> PayoffTable:
        """The games that `save_state` gave, of these players."""
        return cls(tuple(rows), tuple(columns), *(np.array(state[name]) for name in _ARRAYS))

    def _spread(self, rows: tuple[str, ...], columns: tuple[str, ...]) -> PayoffTable:
        """The same games in a table of more players."""
        if (rows, columns) == (self.rows, self.columns):
            return self
        table = PayoffTable.empty(rows, columns)
        places = np.ix_([rows.index(name) for name in self.rows], [columns.index(name) for name in self.columns])
        for name in _ARRAYS:
            getattr(table, name)[..., *places] = getattr(self, name)
        return table


def _joined(one: tuple[Any, Any, Any], two: tuple[Any, Any, Any]) -> tuple[Any, Any]:
    """Mean and sum of squared deviations of two sets together, each given by its (count, mean, deviations).

    Chan, Golub and LeVeque 1979, eq. 2.1; no sum of squares is taken, which would cancel.
    """
    (count, mean, deviations), (other_count, other_mean, other_deviations) = one, two
    share = other_count / np.maximum(count + other_count, 1)
    apart = other_mean - mean
    return mean + apart * share, deviations + other_deviations + apart**2 * count * share
