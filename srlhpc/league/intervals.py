"""How well a win rate or a mean return is known after so many games."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from srlhpc.league.payoffs import FloatArray


class Interval(NamedTuple):
    """Both ends of confidence intervals, arrays of one shape."""

    low: FloatArray
    high: FloatArray


def wilson(scores: ArrayLike, games: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Score intervals of win rates (Wilson 1927): those rates that a normal test would not reject.

    (p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n) with p = score / n. It stays within [0, 1], and has a
    width also where all games were won. A draw counts as half a win: games vary less then, so it is rather too wide.

    Args:
        scores: what was scored in all games.
        games: how many; where there was none, the interval is [0, 1].
        confidence: of the intervals.
    """
    n = np.maximum(np.asarray(games, np.float64), 1.0)
    p, z = np.asarray(scores, np.float64) / n, quantile(confidence)
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    known = np.asarray(games) > 0
    return Interval(
        np.where(known, np.maximum(middle - half, 0.0), 0.0), np.where(known, np.minimum(middle + half, 1.0), 1.0)
    )


def normal(means: ArrayLike, variances: ArrayLike, counts: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Intervals of mean returns: mean ± z sqrt(variance / n).

    Args:
        means: of the returns.
        variances: of the returns, unbiased.
        counts: games; where there are less than two, the interval is all numbers.
        confidence: of the intervals.
    """
    n = np.asarray(counts, np.float64)
    known = n > 1
    errors = np.sqrt(np.where(known, variances, 0.0) / np.maximum(n, 1.0))
    half = np.where(known, quantile(confidence) * errors, np.inf)
    centre = np.where(known, means, 0.0)
    return Interval(centre - half, centre + half)


def quantile(confidence: float) -> float:
    """How many standard errors an interval reaches to either side: 1.96 for 0.95."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)
