"""What the best checkpoint is best at: one number, and the rule that it comes from."""

from __future__ import annotations

from typing import Literal, NamedTuple

EPISODES_IN_MEAN = 100
"""Training episodes in a mean return; a mean of fewer decides nothing."""

Rule = Literal["return_mean", "evaluation", "win_rate"]
"""The mean return of so many training episodes, or of the last round of evaluation, or the win rate in that."""


class Score(NamedTuple):
    """A checkpoint's score; those of one rule compare, and higher is better."""

    value: float
    rule: Rule
