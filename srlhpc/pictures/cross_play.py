"""Pictures of who beats whom: win rates and returns of all pairings, and ratings with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from srlhpc.league.payoffs import FloatArray
from srlhpc.league.ratings import Ratings
from srlhpc.pictures.figures import DOTS_PER_INCH, new_figure

_CELL = 0.55
"""Inches of a player in a matrix."""
_SMALLEST = 2.8
"""Inches that a panel has at least, so that its title fits."""
_LETTER = 0.08
"""Inches of a letter, about."""
_MOST_NUMBERED = 16
"""With more players the numbers would not fit the cells, and the colours tell alone."""


@dataclass(frozen=True)
class Matrix:
    """One number for every pairing."""

    title: str
    values: FloatArray
    """`[N, N]`: rows against columns; NaN where nothing was played."""
    limits: tuple[float, float] | None = None
    """Ends of the colours; None: of the values."""
    rows: str = ""
    """What the players of rows play."""
    columns: str = ""
    form: str = "{:.3g}"
    """How numbers are written."""


def draw_cross_play(
    names: Sequence[str], win_rates: Matrix, ratings: Ratings, returns: Sequence[Matrix], out: Path
) -> None:
    """Writes a picture: the win rates, and beside each row the rating of its player; below them returns.

    Args:
        names: of the players, rows and columns alike.
        win_rates: of all pairings.
        ratings: of the players.
        returns: of either side, two or none.
        out: the file.
    """
    side = max(_SMALLEST, _CELL * len(names))
    lines = 2 if returns else 1
    figure = new_figure(2 * side + 0.8 + _LETTER * max(map(len, names)), lines * (side + 0.6))
    axes = figure.subplots(lines, 2, squeeze=False)
    numbers = [str(number) for number in range(1, len(names) + 1)]
    labels = [f"{name}  {number}" for name, number in zip(names, numbers, strict=True)]
    draw_matrix(axes[0, 0], win_rates, labels)
    _draw_ratings(axes[0, 1], ratings, numbers)
    for below, matrix, shown in zip(axes[1:].flat, returns, (labels, numbers), strict=False):
        draw_matrix(below, matrix, shown)
    figure.savefig(out, dpi=DOTS_PER_INCH)


def draw_matrix(axes: Any, matrix: Matrix, labels: Sequence[str]) -> None:
    """Draws a matrix whose rows have these labels, and whose columns are numbered."""
    low, high = matrix.limits or (float(np.nanmin(matrix.values)), float(np.nanmax(matrix.values)))
    image = axes.imshow(matrix.values, vmin=low, vmax=high, cmap="RdBu", aspect="auto")
    axes.set_title(matrix.title, loc="left", fontsize="medium")
    axes.set_xlabel(matrix.columns)
    axes.set_ylabel(matrix.rows)
    axes.set_xticks(range(len(labels)), [str(number) for number in range(1, len(labels) + 1)])
    axes.set_yticks(range(len(labels)), labels)
    if len(labels) > _MOST_NUMBERED:
        axes.figure.colorbar(image, ax=axes)
        return
    for (row, column), value in np.ndenumerate(matrix.values):
        if np.isfinite(value):
            # The ends of the colours are dark.
            is_dark = abs(value - (low + high) / 2) > 0.3 * (high - low)
            axes.text(
                *(column, row, matrix.form.format(value)),
                ha="center",
                va="center",
                color="white" if is_dark else "black",
            )


def _draw_ratings(axes: Any, ratings: Ratings, numbers: Sequence[str]) -> None:
    halves = ratings.high - ratings.values
    axes.errorbar(ratings.values, range(len(numbers)), xerr=halves, fmt="o", capsize=3)
    axes.set_title("rating (Elo scale), 95 % interval", loc="left", fontsize="medium")
    axes.set_yticks(range(len(numbers)), numbers)
    # As the rows of the matrix, the first above.
    axes.set_ylim(len(numbers) - 0.5, -0.5)
    axes.grid(alpha=0.3)
