"""Vectors whose observations have parts: written at once where every part is plain, else one by one."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from envs._gymnasium_environment import from_vector, understood
from envs._returned_values import SimulatorError
from srlhpc.environment import Environment

PARTS = {
    "arm": spaces.Dict({"angle": spaces.Box(-1, 1, (2,), np.float64), "on": spaces.MultiBinary(3)}),
    "image": spaces.Box(0, 255, (3, 8, 8), np.uint8),
    "pair": spaces.Tuple([spaces.Box(-1, 1, ()), spaces.Box(0, 255, (5,), np.uint8)]),
}
NOT_PLAIN = {"room": spaces.Discrete(4)}
MASK = {"action_mask": spaces.MultiBinary(3)}


class Parts(gymnasium.Env[Any, Any]):
    """Shows anything of its space; a mask in it forbids the first action."""

    action_space = spaces.Discrete(3)

    def __init__(self, parts: dict[str, Any]) -> None:
        self.observation_space = copy.deepcopy(spaces.Dict(parts))

    def _look(self) -> Any:
        shown = self.observation_space.sample()
        return shown | {"action_mask": np.array([0, 1, 1], np.int8)} if "action_mask" in shown else shown

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.observation_space.seed(seed)
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._look(), 1.0, False, False, {}


def vector_of(parts: dict[str, Any]) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: Parts(parts)] * 2)


def behind_contract(vector: Any) -> Environment:
    seen = understood(vector.single_observation_space, vector.single_action_space, "it", "change it", "change it")
    return from_vector(vector, 2, seen, {})


@pytest.mark.parametrize("more", [{}, NOT_PLAIN, MASK, NOT_PLAIN | MASK])
def test_parts_of_a_vectors_observations_are_where_their_names_say(more: dict[str, Any]) -> None:
    environment, twin = behind_contract(vector_of(PARTS | more)), vector_of(PARTS | more)
    now, raw = environment.reset(3).kinds["agent"], twin.reset(seed=3)[0]
    for _ in range(3):
        np.testing.assert_array_equal(now.observations["arm.angle"][:, 0], raw["arm"]["angle"].astype(np.float32))
        np.testing.assert_array_equal(now.observations["arm.on"][:, 0], raw["arm"]["on"])
        np.testing.assert_array_equal(now.observations["image"][:, 0], raw["image"])
        np.testing.assert_array_equal(now.observations["pair.0"][:, 0], raw["pair"][0])
        np.testing.assert_array_equal(now.observations["pair.1"][:, 0], raw["pair"][1])
        if "room" in more:
            np.testing.assert_array_equal(now.observations["room"][:, 0].argmax(axis=-1), raw["room"])
        masks = None if now.action_masks is None else now.action_masks.tolist()
        assert masks == ([[[False, True, True]]] * 2 if "action_mask" in more else None)
        actions = np.array([1, 2])
        now = environment.step({"agent": actions[:, None]}).kinds["agent"]
        raw, *_ = twin.step(actions)


def test_part_of_another_shape_is_named() -> None:
    vector = vector_of(PARTS)
    environment = behind_contract(vector)
    vector.reset = lambda **_: ({**PARTS, "arm": {"angle": np.zeros((2, 5)), "on": np.zeros((2, 3))}}, {})
    with pytest.raises(SimulatorError, match="observation 'arm.angle' of all environments is of another shape"):
        environment.reset(0)
