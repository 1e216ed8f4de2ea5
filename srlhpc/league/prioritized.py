"""Prioritised fictitious self-play: past opponents are met more often the more is to be learnt from them.

Vinyals et al. 2019 (AlphaStar, doi:10.1038/s41586-019-1724-z), Methods, "Multi-agent learning". N opponents.
"""

from __future__ import annotations

import numpy as np

from srlhpc.league.payoffs import FloatArray


def hard(win_rates: FloatArray, *, power: float = 2.0) -> FloatArray:
    """Chances to meet each opponent, in proportion to (1 - x)^power: those that the learner does not beat.

    Args:
        win_rates: `[N]`: x, how often the learner beats each.
        power: how much more often the hard ones are met.

    Returns:
        float64 `[N]`, of sum 1; uniform where all are always beaten.

    Raises:
        ValueError: a rate is no finite number.
    """
    return _chances((1.0 - win_rates) ** power)


def variance(win_rates: FloatArray) -> FloatArray:
    """Chances to meet each opponent, in proportion to x (1 - x): those of the learner's own strength.

    Args:
        win_rates: `[N]`: x, how often the learner beats each.

    Returns:
        float64 `[N]`, of sum 1; uniform where the outcome is always the same.

    Raises:
        ValueError: a rate is no finite number.
    """
    return _chances(win_rates * (1.0 - win_rates))


def _chances(weights: FloatArray) -> FloatArray:
    total = weights.sum()
    if not np.isfinite(total):
        raise ValueError("a win rate is no finite number")
    return weights / total if total > 0 else np.full(len(weights), 1.0 / max(len(weights), 1))


class OpponentScores:
    """What a learner that changes scores against each opponent: old games count less with every new one.

    Attributes:
        scores: float64 `[N]`, faded.
        games: float64 `[N]`, faded likewise.
    """

    def __init__(self, opponents: int, *, decay: float = 0.99) -> None:
        """`decay` in (0, 1]: what a game counts after one more game against that opponent; 1: all count alike."""
        self.scores, self.games = np.zeros(opponents), np.zeros(opponents)
        self._decay = decay

    def add(self, opponent: int, score: float, games: int = 1) -> None:
        """Adds games against one opponent, as if each had scored `score / games`.

        Args:
            opponent: which one.
            score: of all these games together, wins and half the draws.
            games: how many.
        """
        if not games:
            return
        fading = self._decay**games
        # 1 + decay + decay² ... for each of the new ones.
        weight = games if self._decay == 1.0 else (1.0 - fading) / (1.0 - self._decay)
        self.scores[opponent] = self.scores[opponent] * fading + weight * score / games
        self.games[opponent] = self.games[opponent] * fading + weight

    @property
    def win_rates(self) -> FloatArray:
        """`[N]`: (scores + 1) / (games + 2), so that who was not met yet counts as even."""
        return (self.scores + 1.0) / (self.games + 2.0)
