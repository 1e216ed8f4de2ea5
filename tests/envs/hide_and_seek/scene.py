"""Worlds that are arranged by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np

from envs.hide_and_seek.environment import HideAndSeek
from envs.hide_and_seek.layout import CUBE, Layout
from envs.hide_and_seek.settings import Settings
from envs.hide_and_seek.walls import Wall
from srlhpc.environment import KindStep, Step

IDLE = (5, 5, 5, 0, 0)
FORWARD_X = (10, 5, 5, 0, 0)
PULL = (5, 5, 5, 1, 0)
LOCK = (5, 5, 5, 0, 1)

Point = tuple[float, float]


def settings_for(hiders: int, seekers: int, boxes: int, ramps: int, **changes: Any) -> Settings:
    """No preparation, no rectangle, long episodes, unless told otherwise."""
    scenario = {
        "kind": "random_walls",
        "boxes": [boxes, boxes],
        "elongated": [0, boxes],
        "ramps": ramps,
        "restrict": None,
        "horizon": 1000,
        **changes.pop("scenario", {}),
    }
    return Settings.model_validate(
        {
            "factory": "hide_and_seek",
            "scenario": scenario,
            "hiders": [hiders, hiders],
            "seekers": [seekers, seekers],
            "prep_fraction": 0.0,
            **changes,
        }
    )


class Scene:
    """One environment with everything where the test wants it; points are the centres of things.

    Slots count hiders, seekers, boxes, ramps.
    """

    def __init__(
        self,
        hiders: Sequence[Point] = ((100.0, 100.0),),
        seekers: Sequence[Point] = ((-100.0, -100.0),),
        boxes: Sequence[Point] = (),
        ramps: Sequence[Point] = (),
        walls: Sequence[Wall] = (),
        sizes: Sequence[tuple[float, float, float]] | None = None,
        food: Sequence[Point] = (),
        settings: Settings | None = None,
        **changes: Any,
    ) -> None:
        sizes = [CUBE] * len(boxes) if sizes is None else sizes
        if food:
            changes.setdefault("food", {"sites": len(food)})
        settings = settings or settings_for(len(hiders), len(seekers), len(boxes), len(ramps), **changes)
        half = np.array(sizes).reshape(-1, 3)[:, :2] / 2
        layout = Layout(
            hiders=len(hiders),
            seekers=len(seekers),
            walls=tuple(walls),
            agents=np.array([*hiders, *seekers]) - 0.15,
            boxes=np.array(boxes).reshape(-1, 2) - half,
            box_sizes=np.array(sizes).reshape(-1, 3),
            ramps=np.array(ramps).reshape(-1, 2) - 0.25,
            food=np.array([(x, y, 0.05) for x, y in food]).reshape(-1, 3),
        )
        self.environment = HideAndSeek(settings, 1, 0, render=True)
        self.game = self.environment._game
        with patch("envs.hide_and_seek.environment.draw_layout", return_value=layout):
            self.now = self.environment.reset(0)

    @property
    def agent(self) -> KindStep:
        return self.now.kinds["agent"]

    def seen(self, key: str) -> np.ndarray:
        """An observation of all agents."""
        return self.agent.observations[key][0]

    @property
    def rewards(self) -> list[float]:
        return self.agent.rewards[0].tolist()

    def put(self, slot: int, **values: float) -> None:
        """Moves a body: `x`, `y`, `z` of its centre, `angle`."""
        bodies = self.game.bodies
        for axis, name in enumerate(("x", "y", "z")):
            if name in values:
                bodies.positions[0, slot, axis] = values[name] - bodies.half_sizes[0, slot, axis]
        if "angle" in values:
            bodies.positions[0, slot, 3] = values["angle"]
        bodies.write(0, self.game.worlds[0])
        self.game.perceive()
        self.environment._show()

    def at(self, slot: int) -> np.ndarray:
        """Centre and angle of a body."""
        bodies = self.game.bodies
        return np.append(bodies.centres[0, slot], bodies.positions[0, slot, 3])

    def step(self, *actions: tuple[int, ...], times: int = 1) -> Step:
        """Steps with an action for each agent; those without one are idle."""
        array = np.array([IDLE] * self.agent.alive.shape[1])
        for agent, action in enumerate(actions):
            array[agent] = action
        for _ in range(times):
            self.now = self.environment.step({"agent": array[None]})
        return self.now

    def sees(self, agent: int, slot: int) -> bool:
        return bool(self.game.sees[0, agent, slot])


def facing(origin: Point, target: Point, off: float = 0.0) -> float:
    """The hinge angle with which an agent faces a target, or so far off it."""
    return float(np.arctan2(target[1] - origin[1], target[0] - origin[0]) + np.pi / 2 + off)
