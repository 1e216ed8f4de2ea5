"""One game of ViZDoom by the package's `DoomGame`, whose engine is a process of its own.

The limit of an episode is counted here, not by the engine, which shows nothing any more once its own limit is reached:
the real last frame would be lost. Where an episode ends in the game, by death or at an exit, there is no such frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from envs._returned_values import SimulatorError
from envs._vizdoom_guard import Guard
from srlhpc.environment import Array
from srlhpc.errors import UserError


class View(NamedTuple):
    """What a game shows."""

    frame: Array
    """uint8 `[1 or 3, height, width]`."""
    variables: Array
    """float64, one for each that was asked for."""


class Game:
    """One started game.

    Args:
        doom: of `configured`.
        guard: what ends the engine with this process.
        number: of its environment, in messages.

    Raises:
        UserError: the engine does not start, because a file is missing, for example.
    """

    def __init__(self, doom: Any, guard: Guard, number: int) -> None:
        self._doom = doom
        self._number = number
        self._most_tics = doom.get_episode_timeout() or np.iinfo(np.int64).max
        self._tics_left = 0
        doom.set_episode_timeout(0)
        try:
            with guard.starting():
                doom.init()
        except Exception as error:
            raise UserError(f"environment.scenario: ViZDoom does not start: {type(error).__name__}: {error}") from None

    def seed(self, seed: int) -> None:
        """Lets the next episode, and those after it, follow from `seed`, 0 to 2^32 - 1."""
        self._doom.set_seed(seed)

    def begin(self) -> View:
        """Starts an episode."""
        self._tics_left = self._most_tics
        with self._engine():
            self._doom.new_episode()
            return self._view()

    def act(self, buttons: Sequence[float], tics: int) -> tuple[float, bool, bool, View | None]:
        """Holds buttons for so many tics, or until the episode ends.

        Returns:
            The reward, whether the episode ended in the game, whether its limit is reached, and what is shown: None
            where it ended in the game.
        """
        tics = min(tics, self._tics_left)
        with self._engine():
            reward = self._doom.make_action(buttons, tics)
            self._tics_left -= tics
            is_over = self._doom.is_episode_finished()
            return reward, is_over, not self._tics_left, None if is_over else self._view()

    def _view(self) -> View:
        state = self._doom.get_state()
        frame = state.screen_buffer
        variables = state.game_variables
        return View(frame if frame.ndim == 3 else frame[None], np.empty(0) if variables is None else variables)

    @contextmanager
    def _engine(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise SimulatorError(
                f"environment {self._number}: ViZDoom's engine, a process of its own, has ended or fails "
                f"({type(error).__name__}: {error}); `dmesg` or `sacct` tell whether memory ran out, and fewer "
                "actors.environments take less; `srlhpc resume` goes on from the last checkpoint"
            ) from error

    def close(self) -> None:
        self._doom.close()
