"""All strategies equally often: with responses that are added to them, fictitious play (Brown 1951)."""

from __future__ import annotations

import numpy as np

from srlhpc.league.game import Game, Mixtures


def solve(game: Game) -> Mixtures:
    """Uniform mixtures."""
    rows, columns = game.row.shape
    return Mixtures(np.full(rows, 1.0 / rows), np.full(columns, 1.0 / columns))
