"""Wrappers that Gymnasium lacks, for `wrappers` of `factory: gymnasium`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from srlhpc.environment import Array


class SelectObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Shows some numbers of an observation that is one row of them, as CartPole's positions without its velocities.

    `wrappers: [{envs.wrappers.SelectObservation: {indices: [0, 2]}}]`

    Args:
        env: what observes a `Box` `[N]`.
        indices: which numbers, in the order in which they are shown; from 0.

    Raises:
        ValueError: the observation is no such row, or has no such number.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], indices: Sequence[int]) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
            raise ValueError(f"it selects from a row of numbers, and {space} is none; flatten it first")
        size = space.shape[0]
        chosen = [index for index in indices if isinstance(index, int) and 0 <= index < size]
        if not chosen or len(chosen) < len(indices):
            raise ValueError(f"indices is {list(indices)}; write numbers from 0 to {size - 1}, as in [0, {size - 1}]")
        self._indices = np.array(chosen)
        self.observation_space = gymnasium.spaces.Box(space.low[chosen], space.high[chosen], dtype=space.dtype.type)

    def observation(self, observation: Array) -> Array:
        shown: Array = observation[self._indices]
        return shown
