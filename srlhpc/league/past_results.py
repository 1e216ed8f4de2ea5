"""What one learning side did against the versions of one other side, game by game."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.league.payoffs import PayoffTable
from srlhpc.league.prioritized import OpponentScores

LEARNER = "learner"
"""The only row of the table: the learner, as it was in each game."""


class PastResults:
    """All games of a table that grows with the versions, and win rates in which old games fade.

    Args:
        decay: what a game counts in win rates after one more against the same version.
    """

    def __init__(self, decay: float) -> None:
        self.scores = OpponentScores(decay=decay)
        self.table = PayoffTable.empty([LEARNER], [])
        """The learner against each version that was met, named by its updates."""

    def add(self, versions: NDArray[np.int64], returns: NDArray[np.float64]) -> None:
        """Adds games.

        Args:
            versions: `[n]`: who was met.
            returns: `[n, 2]`: of the learner and of the other. Games with a NaN, in which a side was not in the game,
                count for nothing.
        """
        whole = np.isfinite(returns).all(axis=1)
        for version in np.unique(versions[whole]).tolist():
            played = returns[whole & (versions == version)]
            if str(version) not in self.table.columns:
                self.table = self.table.merged(PayoffTable.empty([LEARNER], [str(version)]))
            self.table.add(LEARNER, str(version), played)
            score = np.count_nonzero(played[:, 0] > played[:, 1]) + 0.5 * np.count_nonzero(played[:, 0] == played[:, 1])
            self.scores.add(version, float(score), len(played))

    @property
    def games(self) -> int:
        return int(self.table.counts.sum())

    @property
    def win_rate(self) -> float | None:
        """Share of all games that the learner won, draws as half; None before the first."""
        return float(self.table.scores.sum() / self.games) if self.games else None

    def forget(self, versions: Collection[int]) -> None:
        """These will not be met again; their games stay in the table."""
        self.scores.forget(versions)

    def save_state(self) -> dict[str, Any]:
        versions = np.array([int(name) for name in self.table.columns], np.int64)
        return {"scores": self.scores.save_state(), "versions": versions, **self.table.save_state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.scores.load_state(state["scores"])
        self.table = PayoffTable.from_state([LEARNER], list(map(str, state["versions"].tolist())), state)
