"""Gymnasium environments that draw nothing, each in its own way; importing this module registers them."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np


class Blind(gymnasium.Env[Any, Any]):
    """Has no `render`."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ARG002
        return np.zeros(2, np.float32), 0.0, True, False, {}


class TakesNothing(Blind):
    """Has no `__init__` that takes a render mode."""

    __init__ = object.__init__  # type: ignore[assignment]


class Forgets(Blind):
    """Takes a render mode and does not keep it."""

    def __init__(self, render_mode: str | None = None) -> None:
        pass

    def render(self) -> Any:
        return np.zeros((2, 2, 3), np.uint8)


class Fails(Blind):
    """Cannot draw here."""

    def render(self) -> Any:
        raise RuntimeError("no screen")


class Refuses(Blind):
    """Does not know the mode that pictures need."""

    def __init__(self, render_mode: str | None = None) -> None:
        if render_mode is not None:
            raise ValueError("only text")


for blind in (Blind, TakesNothing, Forgets, Fails, Refuses):
    gymnasium.register(f"{blind.__name__}-v0", blind)
