"""Gymnasium environments that show or return what their spaces do not say; importing this module registers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from envs.gymnasium import Settings, build
from srlhpc.environment import Environment

Returned = tuple[Any, Any, Any, Any, dict[str, Any]]


class Told(gymnasium.Env[Any, Any]):
    """Says what it is told to.

    Args:
        shows: time to observation; everything else is like it should be.
        ends: time to reward, terminated and truncated.
        informs: time to info.
    """

    def __init__(
        self,
        shows: Callable[[int], Any],
        observation_space: Any = None,
        action_space: Any = None,
        ends: Callable[[int], tuple[Any, Any, Any]] = lambda _: (1.0, False, False),
        informs: Callable[[int], dict[str, Any]] = lambda _: {},
    ) -> None:
        self.observation_space = spaces.Box(-1, 1, (3,)) if observation_space is None else observation_space
        self.action_space = spaces.Discrete(3) if action_space is None else action_space
        self._shows, self._ends, self._informs = shows, ends, informs
        self.actions: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._time = 0
        return self._shows(0), self._informs(0)

    def step(self, action: Any) -> Returned:
        self.actions.append(action)
        self._time += 1
        return self._shows(self._time), *self._ends(self._time), self._informs(self._time)


class ToldVector(VectorEnv[Any, Any, Any]):
    """All environments of it, as it is told to."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, num_envs: int, vector: dict[str, Callable[[int, int], Any]], **_: Any) -> None:
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = spaces.Box(-1, 1, (3,)), spaces.Discrete(3)
        self._vector = vector

    def _says(self, name: str, right: Any) -> Any:
        return self._vector[name](self._time, self.num_envs) if name in self._vector else right

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:  # noqa: ARG002
        self._time = 0
        return self._says("shows", np.zeros((self.num_envs, 3), np.float32)), self._says("informs", {})

    def step(self, actions: Any) -> Returned:  # noqa: ARG002
        self._time += 1
        never = np.zeros(self.num_envs, np.bool_)
        return (
            self._says("shows", np.zeros((self.num_envs, 3), np.float32)),
            self._says("rewards", np.zeros(self.num_envs)),
            self._says("terminated", never),
            never,
            self._says("informs", {}),
        )


def _told(vector: Any = None, **kwargs: Any) -> Told:
    return Told(**{"shows": lambda _: np.zeros(3, np.float32), **kwargs})


gymnasium.register("Told-v0", _told)
gymnasium.register("ToldVector-v0", _told, vector_entry_point=ToldVector)


def told(num_environments: int = 2, **kwargs: Any) -> Environment:
    return build(Settings(factory="gymnasium", id=f"{__name__}:Told-v0", kwargs=kwargs), num_environments, 0)


def told_vector(num_environments: int = 2, **vector: Any) -> Environment:
    settings = Settings(factory="gymnasium", id=f"{__name__}:ToldVector-v0", kwargs={"vector": vector})
    return build(settings, num_environments, 0)


def play(environment: Environment, steps: int = 1) -> None:
    environment.reset(0)
    shape = environment.spaces.kinds[0].actions.array
    for _ in range(steps):
        environment.step({"agent": np.zeros((environment.num_environments, 1, *shape.shape), shape.dtype)})
