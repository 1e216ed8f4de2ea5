"""What came of an arena, as tables for people."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from srlhpc.arena.matches import Conditions, Played
from srlhpc.arena.report import ratings_of
from srlhpc.arena.sides import Side
from srlhpc.errors import counted
from srlhpc.league.intervals import normal, wilson
from srlhpc.league.payoffs import PayoffTable

_BETWEEN = 2
"""Blanks between two columns."""
_NOT_PLAYED = "-"
_ROUNDING = 1e-9
"""Returns that differ by less than this part of their mean are equal."""
Column = Sequence[str]
"""A heading and a cell for each contestant."""


def lines_of(sides: Sequence[Side], conditions: Conditions, played: Played, width: int) -> list[str]:
    """Win rates with ratings beside them; where the sides are not alike, returns of each too; remarks.

    Args:
        sides: of the environment.
        conditions: how it was played.
        played: what came of it.
        width: characters of a line; columns that do not fit are continued below.
    """
    names = played.games.rows
    numbers: Column = ["", *(str(number) for number in range(1, len(names) + 1))]
    head = [numbers, ["player", *names], _ratings(played)]
    lines = textwrap.wrap(_heading(sides, conditions, played), width)
    lines += _wrapped(head, _by_opponent(_rates(played.games)), width)
    for place, side in enumerate(() if played.alike else sides):
        lines += ["", f"mean return of {side.name}; rows play {sides[0].name}, columns {sides[1].name}"]
        lines += _wrapped([numbers], _by_opponent(_returns(played.by_side, place)), width)
    for remark in _remarks(conditions, played):
        lines += ["", *textwrap.wrap(remark, width)]
    return lines


def _heading(sides: Sequence[Side], conditions: Conditions, played: Played) -> str:
    episodes = counted(conditions.episodes, "episode")
    if played.alike:
        how = f"{episodes} of each pairing on either side"
    else:
        how = f"{episodes} of each pairing as {sides[0].name} and as {sides[1].name}, their returns added in pairs"
    return (
        "win rates of rows against columns in percent (95 % interval), draws half; ratings on the Elo scale, of mean 0 "
        f"(± 95 %); {how}"
    )


def _ratings(played: Played) -> Column:
    ratings = ratings_of(played)
    halves = ratings.high - ratings.values
    return ["rating", *(f"{value:+.0f} ± {half:.0f}" for value, half in zip(ratings.values, halves, strict=True))]


def _rates(table: PayoffTable) -> list[list[str]]:
    """Cells `[R][C]`: ` 75 (60-86)`."""
    interval = wilson(table.scores, table.counts)
    numbers = 100 * np.stack([table.win_rates, interval.low, interval.high], axis=-1)
    return [[_rate(*cell) for cell in row] for row in numbers.tolist()]


def _rate(rate: float, low: float, high: float) -> str:
    return _NOT_PLAYED if math.isnan(rate) else f"{rate:3.0f} ({low:.0f}-{high:.0f})"


def _returns(table: PayoffTable, side: int) -> list[list[str]]:
    """Cells `[R][C]`: `12.5 ± 0.42`."""
    means, variances = table.mean_returns[side], table.variances[side]
    halves = normal(means, variances, table.counts).high - np.nan_to_num(means)
    return [[_return(*cell) for cell in row] for row in np.stack([means, halves], axis=-1).tolist()]


def _return(mean: float, half: float) -> str:
    return _NOT_PLAYED if math.isnan(mean) else f"{mean:.4g} ± {half:.2g}"


def _by_opponent(cells: Sequence[Sequence[str]]) -> list[Column]:
    """A column for each opponent, headed by its number."""
    return [[str(number), *column] for number, column in enumerate(zip(*cells, strict=True), 1)]


def _wrapped(head: Sequence[Column], columns: Sequence[Column], width: int) -> list[str]:
    """Lines of a table; columns that do not fit beside the head are continued below, beside its first column."""
    lines: list[str] = []
    while columns:
        fitting = max(1, sum(1 for _ in takewhile(lambda used: used <= width, _widths(head, columns))))
        lines += [*([""] if lines else []), *_rendered([*head, *columns[:fitting]])]
        head, columns = head[:1], columns[fitting:]
    return lines


def _widths(head: Sequence[Column], columns: Sequence[Column]) -> Iterator[int]:
    """Width of the table with one column, two, ..."""
    used = sum(max(map(len, column)) + _BETWEEN for column in head) - _BETWEEN
    for column in columns:
        used += _BETWEEN + max(map(len, column))
        yield used


def _rendered(columns: Sequence[Column]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield (" " * _BETWEEN).join(cells).rstrip()


def _remarks(conditions: Conditions, played: Played) -> Iterator[str]:
    """Warnings of pairings in which one episode may have been played again and again, and of what is not drawn."""
    names = played.games.rows
    undrawn = np.array([not conditions.drawn or name in played.undrawn for name in names])
    alike = [
        f"{row + 1}-{column + 1}"
        for row, column in np.argwhere(_constant(played.by_side) & undrawn[:, None] & undrawn).tolist()
    ]
    if alike:
        may_draw = not conditions.drawn and len(played.undrawn) < len(names)
        yield (
            f"{counted(len(alike), 'pairing')} (row-column) brought the same returns in all episodes: "
            f"{', '.join(alike)}. If that is one episode again and again, the intervals promise too much there."
            + (" --draw-actions draws actions as the policies weigh them." if may_draw else "")
        )
    if conditions.drawn and played.undrawn:
        yield (
            f"--draw-actions does not change {', '.join(played.undrawn)}: the learning rule says how its policy acts "
            "in evaluation."
        )


def _constant(table: PayoffTable) -> NDArray[np.bool_]:
    """`[R, C]`: pairings of several games that all brought the same returns, but for rounding of their mean."""
    spread = table.counts * np.square(_ROUNDING * table.means)
    return (table.counts > 1) & (table.deviations <= spread).all(axis=0)
