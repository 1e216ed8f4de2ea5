"""A Gymnasium environment that counts its steps, with vectors of many kinds; importing this module registers them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


class Counting(gymnasium.Env[Any, Any]):
    """Observes the number of its step and never ends by itself; the reward is the action."""

    metadata = {"render_modes": ["rgb_array"]}
    observation_space: Any = spaces.Box(0, 1000, (2,), np.float32)
    action_space: Any = spaces.Discrete(3)

    def __init__(self, render_mode: str | None = None, num_envs: int = 0) -> None:
        self.render_mode = render_mode
        self.own_number = num_envs
        self.time = 0

    def render(self) -> Any:
        return np.full((4, 6), self.time / 100)

    def _look(self) -> Any:
        return np.full(2, self.time, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.time = 0
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return self._look(), float(action), False, False, {}


class CountingVector(VectorEnv[Any, Any, Any]):
    """The same, many at once; its rewards after an end are not 0, as they should be."""

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}
    single_observation_space: Any = Counting.observation_space
    single_action_space: Any = Counting.action_space

    def __init__(self, num_envs: int, max_episode_steps: int = 1_000_000) -> None:
        self.num_envs, self.limit = num_envs, max_episode_steps
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def _look(self) -> Any:
        return np.repeat(self.time[:, None], 2, axis=1).astype(np.float32)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.time = np.zeros(self.num_envs, np.int64)
        self.ended = np.zeros(self.num_envs, np.bool_)
        return self._look(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        assert self.action_space.contains(actions)
        self.time = np.where(self.ended, 0, self.time + 1)
        self.ended = self.time >= self.limit
        return self._look(), actions + 1.0, np.zeros(self.num_envs, np.bool_), self.ended.copy(), {}


class SameStepVector(CountingVector):
    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}


class DisabledVector(CountingVector):
    metadata = {"autoreset_mode": AutoresetMode.DISABLED}


class SilentVector(CountingVector):
    metadata = {}


class OtherSpaceVector(CountingVector):
    """Preprocesses, as Atari's vector does."""

    single_observation_space = spaces.Box(0, 1, (4,), np.float32)


class NoisyVector(CountingVector):
    """Every environment sees something else."""

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.noise = np.random.default_rng(seed)
        return super().reset(seed=seed, options=options)

    def _look(self) -> Any:
        return super()._look() + self.noise.random((self.num_envs, 2), np.float32)


class PictureVector(CountingVector):
    """Observes a mapping with an image."""

    single_observation_space = spaces.Dict(
        {"image": spaces.Box(0, 255, (6, 5, 3), np.uint8), "step": spaces.Discrete(9)}
    )

    def _look(self) -> Any:
        images = np.zeros((self.num_envs, 6, 5, 3), np.uint8)
        images[:, 1, 2, 0] = self.time
        return {"image": images, "step": self.time.copy()}


VECTORS = {
    "Native": CountingVector,
    "SameStep": SameStepVector,
    "Disabled": DisabledVector,
    "Silent": SilentVector,
    "OtherSpace": OtherSpaceVector,
    "Noisy": NoisyVector,
}
for name, vector in VECTORS.items():
    gymnasium.register(f"{name}-v0", Counting, max_episode_steps=10, vector_entry_point=vector)
    gymnasium.register(f"{name}Only-v0", None, max_episode_steps=4, vector_entry_point=vector)
gymnasium.register("PictureOnly-v0", None, max_episode_steps=4, vector_entry_point=PictureVector)
