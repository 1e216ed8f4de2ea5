"""Games of the package MinAtar one by one: played as its own `Environment` does, saved and loaded exactly."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from envs._bare_modules import load_bare
from envs._generators import legacy_generator_words, load_legacy_generator
from srlhpc.environment import Array


class Facts(NamedTuple):
    """What is known of a game without its package."""

    channels: int
    minimal_actions: tuple[int, ...]
    """Which of the six actions do something."""
    ends_by_clock: bool = False
    """Whether only a limit of frames ends the game."""


GAMES = {
    "asterix": Facts(4, (0, 1, 2, 3, 4)),
    "breakout": Facts(4, (0, 1, 3)),
    "freeway": Facts(7, (0, 2, 4), ends_by_clock=True),
    "seaquest": Facts(10, (0, 1, 2, 3, 4, 5)),
    "space_invaders": Facts(6, (0, 1, 3, 5)),
}
ACTIONS = 6
"""Idle, left, up, right, down, fire."""
SIDE = 10

_FIXED = ("channels", "action_map", "ramping", "random")
"""Attributes of a simulator that are no state, or are saved apart."""


def game_module(name: str) -> Any:
    """The simulator's module of one game.

    `import minatar` would load pandas, seaborn and matplotlib to draw windows: two seconds and 130 MB in every actor.
    """
    return load_bare(f"minatar.environments.{name}")


class Game:
    """One game with its generator and its sticky actions.

    Args:
        module: of `game_module`.
        sticky_actions: probability that the action before is played again.
        difficulty_ramping: whether the game becomes faster with time, where it can.
    """

    def __init__(self, module: Any, sticky_actions: float, *, difficulty_ramping: bool) -> None:
        self._simulator = module.Env(ramping=difficulty_ramping)
        self._sticky_actions = sticky_actions
        self._random = self._simulator.random
        self._last_action = 0

    def seed(self, seed: int) -> None:
        """Starts anew; everything random afterwards follows from `seed`."""
        self._random = self._simulator.random = np.random.RandomState(seed)
        self._last_action = 0
        self.restart()

    def restart(self) -> None:
        """Begins an episode. The last action stays what it was, as in the package."""
        self._simulator.reset()

    def act(self, action: int) -> tuple[float, bool]:
        """Plays one frame; the reward, and whether the game is over."""
        if self._random.rand() < self._sticky_actions:
            action = self._last_action
        self._last_action = action
        reward, over = self._simulator.act(action)
        return float(reward), bool(over)

    def cells(self) -> Array:
        """What is where now, bool `[10, 10, C]`: row, column, kind of thing."""
        shown: Array = self._simulator.state()
        return shown

    def state(self) -> dict[str, Any]:
        """The game as plain data, without its generator."""
        shown = {name: value for name, value in vars(self._simulator).items() if name not in _FIXED}
        return {"last_action": self._last_action, "simulator": json.loads(json.dumps(shown, default=_plain))}

    def generator_words(self) -> Array:
        """The generator, as `legacy_generator_words` gives it."""
        return legacy_generator_words(self._random)

    def load(self, state: dict[str, Any], generator_words: Array) -> None:
        """Goes on from what `state` and `generator_words` gave."""
        self._last_action = state["last_action"]
        for name, value in state["simulator"].items():
            setattr(self._simulator, name, _array(value) if isinstance(value, dict) else value)
        self._random = self._simulator.random = np.random.RandomState()
        load_legacy_generator(self._random, generator_words)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": str(value.dtype)}
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a MinAtar game keeps a {type(value).__name__}, which cannot be saved")


def _array(entry: dict[str, Any]) -> Array:
    return np.array(entry["array"], entry["dtype"])
