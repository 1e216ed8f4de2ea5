"""Prioritised fictitious self-play: past opponents are met more often the more is to be learnt from them.

Vinyals et al. 2019 (AlphaStar, doi:10.1038/s41586-019-1724-z), Methods, "Multi-agent learning". N opponents.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """What a learner that changes scores against each opponent: old games count less with every new one."""

    def __init__(self, *, decay: float = 0.99) -> None:
        """`decay` in (0, 1]: what a game counts after one more game against that opponent; 1: all count alike."""
        self._decay = decay
        self._faded: dict[int, tuple[float, float]] = {}
        """Opponent to its faded score and games."""

    def add(self, opponent: int, score: float, games: int = 1) -> None:
        """Adds games against one opponent, as if each had scored `score / games`.

        Args:
            opponent: which one, by number.
            score: of all these games together, wins and half the draws.
            games: how many.
        """
        if not games:
            return
        fading = self._decay**games
        # 1 + decay + decay² ... for each of the new ones.
        weight = games if self._decay == 1.0 else (1.0 - fading) / (1.0 - self._decay)
        before, played = self._faded.get(opponent, (0.0, 0.0))
        self._faded[opponent] = (before * fading + weight * score / games, played * fading + weight)

    def win_rates(self, opponents: Sequence[int]) -> FloatArray:
        """Float64 `[N]` of N opponents: (score + 1) / (games + 2), so that who was not met yet counts as even."""
        faded = [self._faded.get(opponent, (0.0, 0.0)) for opponent in opponents]
        return np.array([(score + 1.0) / (games + 2.0) for score, games in faded], np.float64)

    @property
    def opponents(self) -> Collection[int]:
        """Who has been met and is not forgotten."""
        return self._faded.keys()

    def forget(self, opponents: Collection[int]) -> None:
        """These will not be met again."""
        for opponent in opponents:
            self._faded.pop(opponent, None)

    def save_state(self) -> dict[str, NDArray[np.number[Any]]]:
        faded = np.array(list(self._faded.values()), np.float64).reshape(-1, 2)
        return {"opponents": np.array(list(self._faded), np.int64), "faded": faded}

    def load_state(self, state: Mapping[str, Any]) -> None:
        rows = zip(state["opponents"].tolist(), state["faded"].tolist(), strict=True)
        self._faded = {opponent: (score, games) for opponent, (score, games) in rows}
