"""What came of an arena, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from srlhpc.arena.contestants import Contestant
from srlhpc.arena.matches import Conditions, Played
from srlhpc.arena.sides import Side
from srlhpc.arena.sides import to_json as sides_to_json
from srlhpc.league.intervals import normal, wilson
from srlhpc.league.payoffs import PayoffTable
from srlhpc.league.ratings import Ratings, bradley_terry


def ratings_of(played: Played) -> Ratings:
    """Ratings of all contestants, whose mean is 0."""
    games = played.games
    return bradley_terry(games.scores, games.counts.astype(np.float64))


def result_of(
    contestants: Sequence[Contestant], sides: Sequence[Side], conditions: Conditions, played: Played
) -> dict[str, Any]:
    """Plain data; numbers of pairings that were not played are NaN."""
    ratings = ratings_of(played)
    return {
        "players": [contestant.to_json() for contestant in contestants],
        "sides": sides_to_json(sides),
        "alike": played.alike,
        "episodes": conditions.episodes,
        "seed": conditions.seed,
        "drawn": conditions.drawn,
        "undrawn": list(played.undrawn),
        "unfinished": played.unfinished,
        "max_episode_steps": played.most_steps,
        "ratings": {name: array.tolist() for name, array in ratings._asdict().items()},
        "games": _table_to_json(played.games),
        "by_side": _table_to_json(played.by_side),
    }


def _table_to_json(table: PayoffTable) -> dict[str, Any]:
    rates = wilson(table.scores, table.counts)
    means = normal(table.mean_returns, table.variances, table.counts)
    arrays: Mapping[str, Any] = {
        "counts": table.counts,
        "wins": table.wins,
        "draws": table.draws,
        "losses": table.losses,
        "win_rates": table.win_rates,
        "win_rates_low": rates.low,
        "win_rates_high": rates.high,
        "mean_returns": table.mean_returns,
        "mean_returns_low": means.low,
        "mean_returns_high": means.high,
        "variances": table.variances,
    }
    return {name: array.tolist() for name, array in arrays.items()}
