"""A picture of how strong a run's policies became: ratings of their versions over updates, and who beat whom.

N players.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from srlhpc.data.matches import scored
from srlhpc.errors import UserError
from srlhpc.league.payoffs import FloatArray, PayoffTable
from srlhpc.league.ratings import bradley_terry
from srlhpc.pictures.cross_play import Matrix, draw_matrix
from srlhpc.pictures.curves import metrics_lines
from srlhpc.pictures.figures import DOTS_PER_INCH, new_figure
from srlhpc.runs.checkpoints import checkpoint_folder
from srlhpc.runs.paths import RunPaths
from srlhpc.specs.load import load_experiment

_WIDTH = 7.0
"""Inches."""


class Games(NamedTuple):
    """What came of all games of some players, whichever side each played."""

    players: tuple[str, ...]
    """`POLICY@UPDATES`, or the name alone of a policy that nobody trains; versions in their order."""
    scores: FloatArray
    """`[N, N]`: what the row scored, a draw half."""
    counts: FloatArray
    """`[N, N]`."""


def read_games(paths: RunPaths) -> Games:
    """What a run's evaluators found, or else its table of payoffs.

    Raises:
        UserError: there is neither.
    """
    games = _evaluated(paths) or _measured(paths)
    if games is None:
        raise UserError(
            f"run {paths.name} has no games of its versions against others: its evaluators have no opponents, or have "
            "not ended a round, and no table of payoffs is in its newest checkpoint. Set evaluators.opponents for the "
            "next run, or play this one's versions against each other: srlhpc arena"
        )
    return games


def _evaluated(paths: RunPaths) -> Games | None:
    found = [row for line in metrics_lines(paths) for row in line.get("played", [])]
    # Of a pairing of which episodes were given up, those that ended may be the short ones only.
    rows = [row for row in found if row["games"] and not row["unfinished"] and row["player"] != row["opponent"]]
    if not rows:
        return None
    players = _ordered(name for row in rows for name in (row["player"], row["opponent"]))
    scores, counts = (np.zeros((len(players), len(players))) for _ in range(2))
    for row in rows:
        one, other = players.index(row["player"]), players.index(row["opponent"])
        scores[one, other] += scored(row)
        scores[other, one] += row["games"] - scored(row)
        counts[one, other] += row["games"]
        counts[other, one] += row["games"]
    return Games(players, scores, counts)


def _measured(paths: RunPaths) -> Games | None:
    newest = checkpoint_folder(paths).newest_valid()
    state = None if newest is None else newest.tree.get("matches", {}).get("payoffs")
    if state is None:
        return None
    policies = [entry.policy for entry in load_experiment(paths.spec).agents]
    rows, columns = (
        [f"{policy}@{updates}" for updates in state[side].tolist()]
        for policy, side in zip(policies, ("rows", "columns"), strict=True)
    )
    table = PayoffTable.from_state(rows, columns, state).without_sides()
    players = _ordered(table.rows)
    table = table.only(players, players)
    return Games(players, table.scores, table.counts.astype(np.float64))


def _ordered(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names), key=lambda name: (_policy_of(name), _updates_of(name) or 0)))


def _policy_of(name: str) -> str:
    return name.partition("@")[0]


def _updates_of(name: str) -> int | None:
    updates = name.partition("@")[2]
    return int(updates) if updates else None


def draw_ratings(runs: Mapping[str, Games], out: Path) -> None:
    """Writes a picture: the ratings of all runs' versions over updates, below it who beat whom in each run."""
    figure = new_figure(_WIDTH, 3.5 + 4.5 * len(runs))
    axes = figure.subplots(1 + len(runs), 1, height_ratios=[3.5, *[4.5] * len(runs)], squeeze=False)[:, 0]
    for name, games in runs.items():
        _draw_over_updates(axes[0], games, f"{name}, " if len(runs) > 1 else "")
    axes[0].set_title("rating (Elo scale, of mean 0 in a run), 95 % interval", loc="left", fontsize="medium")
    axes[0].set_xlabel("updates")
    axes[0].grid(alpha=0.3)
    axes[0].legend()
    for below, (name, games) in zip(axes[1:], runs.items(), strict=True):
        with np.errstate(invalid="ignore"):
            rates = 100 * np.where(games.counts > 0, games.scores / games.counts, np.nan)
        title = f"{name}: row beats column, percent of its games"
        labels = [f"{player}  {number}" for number, player in enumerate(games.players, 1)]
        draw_matrix(below, Matrix(title, rates, (0.0, 100.0), form="{:.0f}"), labels)
    figure.savefig(out, dpi=DOTS_PER_INCH)


def _draw_over_updates(axes: Any, games: Games, prefix: str) -> None:
    ratings = bradley_terry(games.scores, games.counts)
    for policy in dict.fromkeys(_policy_of(name) for name in games.players):
        own = [place for place, name in enumerate(games.players) if _policy_of(name) == policy]
        values, low, high = (array[own] for array in ratings)
        updates = [_updates_of(games.players[place]) for place in own]
        if None in updates:
            axes.axhline(values[0], linestyle="--", color="gray", linewidth=1)
            axes.annotate(f"{prefix}{policy}", (0.01, values[0]), xycoords=("axes fraction", "data"), va="bottom")
            continue
        axes.errorbar(updates, values, yerr=[values - low, high - values], fmt="o-", capsize=3, label=prefix + policy)
