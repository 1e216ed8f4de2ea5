"""One number for each player, from who beat whom. It hides cycles: read it beside the table, never instead of it.

N players.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from srlhpc.league.intervals import quantile
from srlhpc.league.payoffs import FloatArray

ELO = 400.0 / math.log(10.0)
"""Points of the Elo scale for one natural unit of log-odds."""
_MOST_STEPS = 100
_TOLERANCE = 1e-9


class Ratings(NamedTuple):
    """Ratings on the Elo scale with confidence intervals, each float64 `[N]`."""

    values: FloatArray
    low: FloatArray
    high: FloatArray


def expected_score(rating: float, other: float) -> float:
    """What a player scores a game against another, by their ratings: 1 / (1 + 10^((other - rating) / 400))."""
    return float(_logistic(np.float64((rating - other) / ELO)))


def bradley_terry(
    scores: FloatArray,
    games: FloatArray,
    *,
    anchor: int | None = None,
    prior_games: float = 1.0,
    confidence: float = 0.95,
) -> Ratings:
    """Ratings that make the scores most likely (Bradley and Terry 1952), a draw as half a win and half a loss.

    maximise Σ_{i<j} s_ij log σ(r_i - r_j) + s_ji log σ(r_j - r_i), σ(x) = 1 / (1 + e^-x), and as a weak prior one drawn
    game of each player against a rating of 0, so that who never lost has a finite rating. Intervals are those of the
    normal distribution whose precision is the observed information, prior included; they are of the difference to the
    mean of all players, or to the anchor.

    Args:
        scores: `[N, N]`: what i scored against j in all games. The diagonal counts for nothing.
        games: `[N, N]`: how many; symmetric, `scores + scores.T` off the diagonal.
        anchor: the player whose rating is 0; None: the mean of all ratings is.
        prior_games: weight of the prior, in games; more than 0.
        confidence: of the intervals.
    """
    players = len(games)
    apart = ~np.eye(players, dtype=np.bool_)
    won, played = np.where(apart, scores, 0.0), np.where(apart, games, 0.0)
    natural, information = _most_likely(won, played, prior_games)
    against = np.full(players, 1.0 / players) if anchor is None else np.eye(players)[anchor]
    differences = np.eye(players) - against
    errors = np.sqrt(np.maximum(np.diag(differences @ np.linalg.inv(information) @ differences.T), 0.0))
    values, half = ELO * (differences @ natural), ELO * quantile(confidence) * errors
    return Ratings(values, values - half, values + half)


def _most_likely(scores: FloatArray, games: FloatArray, prior_games: float) -> tuple[FloatArray, FloatArray]:
    """The maximum in natural units, by Newton steps that are halved until they lead upwards, and the information."""
    ratings = np.zeros(len(games))
    for _ in range(_MOST_STEPS):
        gradient, information = _slope(ratings, scores, games, prior_games)
        step = np.linalg.solve(information, gradient)
        if np.abs(step).max(initial=0.0) < _TOLERANCE:
            break
        before = _likelihood(ratings, scores, prior_games)
        while _likelihood(ratings + step, scores, prior_games) < before and np.abs(step).max() > _TOLERANCE:
            step = step / 2
        ratings = ratings + step
    return ratings, _slope(ratings, scores, games, prior_games)[1]


def _likelihood(ratings: FloatArray, scores: FloatArray, prior_games: float) -> float:
    # log σ(x) = -log(1 + e^-x)
    prior = prior_games * 0.5 * (np.logaddexp(0.0, ratings) + np.logaddexp(0.0, -ratings)).sum()
    return float(-(scores * np.logaddexp(0.0, ratings - ratings[:, None])).sum() - prior)


def _slope(
    ratings: FloatArray, scores: FloatArray, games: FloatArray, prior_games: float
) -> tuple[FloatArray, FloatArray]:
    """Gradient and negative Hessian of the likelihood."""
    expected, prior = _logistic(ratings[:, None] - ratings), _logistic(ratings)
    gradient = (scores - games * expected).sum(axis=1) + prior_games * (0.5 - prior)
    weights = games * expected * (1 - expected)
    return gradient, np.diag(weights.sum(axis=1) + prior_games * prior * (1 - prior)) - weights


def _logistic(x: FloatArray | np.float64) -> FloatArray:
    # 1 / (1 + exp(-x)), which overflows nowhere.
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))
