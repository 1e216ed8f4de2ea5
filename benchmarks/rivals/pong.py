"""Pong for rivals that take one Gymnasium environment at a time, straight on the emulator as theirs would be slower.

The same task as `envs.atari`: 4 frames an action, maximum of the last two, 84 x 84 grey, stacks of 4, sign of the
reward, no sticky actions, up to 30 random no-ops at the start, cut after 27,000 actions.
"""

from __future__ import annotations

from typing import Any

import ale_py
import cv2
import gymnasium
import numpy as np
from ale_py import roms

FRAME_SKIP, STACK, SIDE, MOST_ACTIONS = 4, 4, 84, 27_000


class Pong(gymnasium.Env):
    """One game; observations [4, 84, 84] uint8, newest last."""

    def __init__(self, seed: int) -> None:
        cv2.setNumThreads(1)
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._game = ale_py.ALEInterface()
        self._game.setFloat("repeat_action_probability", 0.0)
        self._game.setInt("random_seed", seed)
        self._game.loadROM(roms.get_rom_path("pong"))
        self._moves = self._game.getMinimalActionSet()
        self._random = np.random.default_rng(seed)
        self._screens = np.zeros((2, 210, 160), np.uint8)
        self._stack = np.zeros((STACK, SIDE, SIDE), np.uint8)
        self._taken = 0
        self.action_space = gymnasium.spaces.Discrete(len(self._moves))
        self.observation_space = gymnasium.spaces.Box(0, 255, self._stack.shape, np.uint8)

    def reset(self, **_: Any) -> tuple[np.ndarray, dict[str, Any]]:
        self._game.reset_game()
        for _ in range(int(self._random.integers(1, 31))):
            self._game.act(self._moves[0])
        self._game.getScreenGrayscale(self._screens[0])
        self._stack[:] = cv2.resize(self._screens[0], (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        self._taken = 0
        return self._stack.copy(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        reward = 0.0
        for frame in range(FRAME_SKIP):
            reward += self._game.act(self._moves[int(action)])
            if frame >= FRAME_SKIP - 2:
                self._game.getScreenGrayscale(self._screens[frame - FRAME_SKIP + 2])
        self._stack[:-1] = self._stack[1:]
        self._stack[-1] = cv2.resize(self._screens.max(axis=0), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        self._taken += 1
        over = self._game.game_over()
        return self._stack.copy(), float(np.sign(reward)), over, self._taken >= MOST_ACTIONS and not over, {}
