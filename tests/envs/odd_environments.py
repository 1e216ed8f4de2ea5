"""Gymnasium environments with unusual spaces; importing this module registers them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Masked(gymnasium.Env[dict[str, Any], np.int64]):
    """Dict observations with an image, float64 and a room number; action numbers from -1; one action always forbidden.

    The forbidden action is room - 2. The last step gives no mask.
    """

    observation_space = spaces.Dict(
        {
            "image": spaces.Box(0, 255, (8, 6, 3), np.uint8),
            "position": spaces.Box(-np.inf, np.inf, (2,), np.float64),
            "room": spaces.Discrete(3, start=1),
        }
    )
    action_space = spaces.Discrete(3, start=-1)

    def _look(self) -> dict[str, Any]:
        self.room = int(self.np_random.integers(1, 4))
        image = np.zeros((8, 6, 3), np.uint8)
        image[self.time % 8, 2, 1] = 200
        return {"image": image, "position": self.np_random.normal(size=2), "room": np.int64(self.room)}

    def _info(self) -> dict[str, Any]:
        mask = np.ones(3, np.int8)
        mask[self.room - 1] = 0
        return {"action_mask": mask}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.time = 0
        return self._look(), self._info()

    def step(self, action: np.int64) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        assert action in (-1, 0, 1)
        assert action != self.room - 2
        self.time += 1
        is_over = bool(self.np_random.random() < 0.2)
        return self._look(), float(action), is_over, is_over or self.time == 6, {} if is_over else self._info()


class Picky(gymnasium.Env[Any, Any]):
    """Any spaces: shows a random observation and remembers the last action, which must be in its space."""

    def __init__(self, observation_space: Any = None, action_space: Any = None) -> None:
        self.observation_space = spaces.Box(-1, 1, (1,)) if observation_space is None else observation_space
        self.action_space = spaces.Discrete(2) if action_space is None else action_space
        self.shown: Any = None
        self.last: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.shown = self.observation_space.sample()
        return self.shown, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.last = action
        return self.shown, 0.0, False, False, {}


class Demanding(Picky):
    """Has an argument without a default, which must be a number."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size + 1


class OldStep(Picky):
    """Says only that something is done, as old Gym."""

    def step(self, action: Any) -> Any:
        return self.observation_space.sample(), 0.0, False, {}


class OldReset(Picky):
    """Returns an observation of two numbers alone."""

    def __init__(self) -> None:
        super().__init__(spaces.Box(-1, 1, (2,)))

    def reset(self, **_: Any) -> Any:
        return self.observation_space.sample()


class Unseeded(Picky):
    """Takes no seed."""

    def reset(self) -> Any:  # type: ignore[override]
        return super().reset()


class Mistaken(Picky):
    """Unpacks something of its own wrongly."""

    def step(self, action: Any) -> Any:
        one, two, three, four, five = range(4)


class Foreign:
    """No environment of Gymnasium's."""


gymnasium.register("Demanding-v0", Demanding)
gymnasium.register("Foreign-v0", Foreign)  # type: ignore[arg-type]
for old in (OldStep, OldReset, Unseeded, Mistaken):
    gymnasium.register(f"{old.__name__}-v0", old)
gymnasium.register("Masked-v0", Masked)
gymnasium.register("Picky-v0", Picky)
