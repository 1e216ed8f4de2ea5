"""An equilibrium of a zero-sum game, by linear programs."""

from __future__ import annotations

import numpy as np

from srlhpc.errors import UserError
from srlhpc.league.game import Game, Mixtures
from srlhpc.league.payoffs import FloatArray

_LARGEST_SHARE = 0.1
"""Part of the range of payoffs by which what both sides get together may vary. NashConv of the solution is no more than
that, which is what 100 games of ±1 leave open about a mean anyway: 1.96 standard errors of 0.1 in a range of 2."""


def solve(game: Game) -> Mixtures:
    """Mixtures of which neither side can improve alone: max_x min_j Σ_i x_i U_ij, and likewise for the other side.

    U = (row - column) / 2 is the part of the game that is zero-sum, since mean returns are never exactly opposite. A
    symmetric game is antisymmetric in it, and both sides get the same mixture. Of several equilibria it is one; which,
    is up to the program's solver.

    What both sides get together, row + column, moves nobody where it is the same for all pairs. Else the mixtures need
    not be an equilibrium: NashConv is at most as much as it varies.

    Raises:
        UserError: it varies by more than a tenth of the payoffs' range, or scipy is not installed.
    """
    _check_zero_sum(game)
    part = (game.row - game.column) / 2
    row = _maximin(part)
    return Mixtures(row, row.copy() if game.is_symmetric else _maximin(-part.T))


def _check_zero_sum(game: Game) -> None:
    varies = float(np.ptp(game.row + game.column))
    span = max(float(np.ptp(game.row)), float(np.ptp(game.column)))
    if varies > _LARGEST_SHARE * span + game.rounding:
        raise UserError(
            f"the meta-solver nash needs a zero-sum game, but what both sides get together varies by {varies:.3g}, "
            f"with payoffs in a range of {span:.3g}; take regret_matching or alpha_rank. If it is only the noise of "
            "games that were played apart, solve the game of (row - column) / 2 and its opposite"
        )


def _maximin(payoffs: FloatArray) -> FloatArray:
    """The mixture of rows whose worst column is best."""
    try:
        from scipy.optimize import linprog
    except ImportError:
        raise UserError(
            "the meta-solver nash needs scipy, which is not installed: pip install 'srlhpc[league]', or take "
            "regret_matching"
        ) from None
    rows, columns = payoffs.shape
    # The solver's tolerances are absolute, so payoffs of any unit become numbers of about 1.
    scale = max(float(np.ptp(payoffs)), np.finfo(np.float64).tiny)
    scaled = (payoffs - payoffs.min()) / scale
    # Unknowns are the mixture and the value v, which is maximised: v - Σ_i x_i U_ij <= 0 for every column.
    found = linprog(
        np.append(np.zeros(rows), -1.0),
        A_ub=np.column_stack([-scaled.T, np.ones(columns)]),
        b_ub=np.zeros(columns),
        A_eq=np.append(np.ones(rows), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * (rows + 1),
        method="highs",
    )
    assert found.success, found.message
    # Rounding may leave it a little below 0.
    mixture: FloatArray = np.maximum(found.x[:rows], 0.0)
    mixture /= mixture.sum()
    return mixture
