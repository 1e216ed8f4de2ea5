"""Environments of dm_env for tests; importing this module needs the package."""

from __future__ import annotations

from typing import Any, ClassVar

import dm_env
import numpy as np
from dm_env import specs


class Walk(dm_env.Environment):
    """Steps to the left or right until 4 away; an episode is cut after 9 steps. Observations have parts."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.closed = False

    def observation_spec(self) -> Any:
        return {
            "body": {"place": specs.Array((1,), np.float64), "is_left": specs.Array((), np.bool_)},
            "eyes": (specs.BoundedArray((8, 6, 3), np.uint8, 0, 255), specs.DiscreteArray(3)),
            "word": specs.StringArray(()),
        }

    def action_spec(self) -> Any:
        return specs.DiscreteArray(2, dtype=np.int16)

    def _look(self) -> Any:
        image = np.full((8, 6, 3), abs(self._place), np.uint8)
        body = {"place": np.array([self._place + self._noise]), "is_left": np.bool_(self._place < 0)}
        return {"body": body, "eyes": (image, np.int32(self._time % 3)), "word": "walk"}

    def reset(self) -> Any:
        self._place, self._time, self._noise = 0, 0, float(self._random.random())
        return dm_env.restart(self._look())

    def step(self, action: Any) -> Any:
        self.action_spec().validate(action)
        self._place += 2 * int(action) - 1
        self._time += 1
        if abs(self._place) == 4:
            return dm_env.termination(1.0, self._look())
        return (dm_env.truncation if self._time == 9 else dm_env.transition)(-0.5, self._look())

    def render(self) -> Any:
        return np.full((4, 5, 3), self._time, np.uint8)

    def close(self) -> None:
        assert not self.closed
        self.closed = True


class Told(dm_env.Environment):
    """Returns the time steps of its class one after the other, and keeps the last action."""

    steps: ClassVar[list[Any]] = []
    actions: ClassVar[Any] = None
    observations: ClassVar[Any] = None

    def action_spec(self) -> Any:
        return self.actions

    def observation_spec(self) -> Any:
        return self.observations

    def reset(self) -> Any:
        return self.steps.pop(0)

    def step(self, action: Any) -> Any:
        self.last = action
        return self.steps.pop(0)
