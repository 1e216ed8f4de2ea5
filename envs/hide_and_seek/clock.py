"""The steps of an episode: preparation, play, end."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from srlhpc.environment import BoolArray


class Clock:
    """Counts the steps of E environments.

    Args:
        num_environments: E.
        horizon: steps of an episode.
        prep_fraction: part of it that is preparation.

    Attributes:
        time: `[E]`, steps that the episode has had.
    """

    def __init__(self, num_environments: int, horizon: int, prep_fraction: float) -> None:
        self.time: NDArray[np.int64] = np.zeros(num_environments, np.int64)
        self._horizon = horizon
        self._prep_steps = prep_fraction * horizon
        self._prep_scale = self._prep_steps + 1e-5

    @property
    def is_preparing(self) -> BoolArray:
        """`[E]`: whether the next step belongs to preparation."""
        preparing: BoolArray = self.time < self._prep_steps
        return preparing

    @property
    def prep_observed(self) -> NDArray[np.float64]:
        """`[E]`: how far preparation is. 1 is only reached one step after preparation."""
        return np.minimum(1.0, self.time / self._prep_scale)

    @property
    def is_prep_reported(self) -> BoolArray:
        """`[E]`: whether `prep_observed` is 1 for the first time."""
        reported: BoolArray = self.time == math.ceil(self._prep_scale)
        return reported

    @property
    def is_over(self) -> BoolArray:
        """`[E]`: whether the episode has had all its steps."""
        over: BoolArray = self.time >= self._horizon
        return over
