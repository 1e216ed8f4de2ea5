"""Catch: a ball falls from a random column, a paddle on the bottom row moves left or right to be under it.

The classic test of Mnih et al. 2014 ("Recurrent Models of Visual Attention", arXiv:1406.6247, section 4.2). All
environments are stepped as one numpy vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from envs._generators import generator_from_state, generator_state
from envs._single_agent import AGENT, SingleAgentRecords, single_agent_spaces
from srlhpc.environment import Array, ArraySpec, BoolArray, Discrete, Environment, SavedState, Spaces, Step
from srlhpc.specs.named_modules import EnvironmentSettings


class Settings(EnvironmentSettings):
    """The size of the board. Best return 1, worst -1."""

    rows: Annotated[int, Field(ge=2)] = 10
    """Rows; an episode has one step less."""
    columns: Annotated[int, Field(ge=2)] = 5
    """Columns."""

    def spaces(self) -> Spaces:
        return single_agent_spaces({"obs": ArraySpec((self.rows * self.columns,), "float32")}, Discrete(3))


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    return Catch(settings, num_environments, seed, render)


class Catch(Environment):
    """Observation: the board row by row, 1 where ball and paddle are. Actions: left, stay, right.

    The reward comes with the step that brings the ball to the bottom row: 1 on the paddle, else -1.
    """

    def __init__(self, settings: Settings, num_environments: int, seed: int, render: bool) -> None:
        self.spaces = settings.spaces()
        self.num_environments = num_environments
        self._rows, self._columns = settings.rows, settings.columns
        self._draws = render
        self._random = np.random.default_rng(seed)
        self._records = SingleAgentRecords(self.spaces, num_environments)
        self._board: NDArray[np.float32] = self._records.now.observations["obs"].reshape(
            num_environments, self._rows, -1
        )
        self._all = np.arange(num_environments)
        self._row = np.zeros(num_environments, np.int64)
        self._column = np.zeros(num_environments, np.int64)
        self._paddle = np.zeros(num_environments, np.int64)

    def reset(self, seed: int) -> Step:
        self._random = np.random.default_rng(seed)
        self._restart(np.ones(self.num_environments, np.bool_))
        self._draw()
        return self._records.start()

    def step(self, actions: Mapping[str, Array]) -> Step:
        ended, now = self._records.ended, self._records.now
        self._paddle = np.clip(self._paddle + actions[AGENT][:, 0] - 1, 0, self._columns - 1)
        self._row += ~ended
        landed = (self._row == self._rows - 1) & ~ended
        now.rewards[:, 0] = landed * np.where(self._paddle == self._column, 1.0, -1.0)
        now.terminated[:, 0] = landed
        if ended.any():
            self._restart(ended)
        self._draw()
        return self._records.finish()

    def _restart(self, which: BoolArray) -> None:
        self._row[which] = 0
        self._column[which] = self._random.integers(self._columns, size=int(which.sum()))
        self._paddle[which] = self._columns // 2

    def _draw(self) -> None:
        self._board[:] = 0.0
        self._board[self._all, self._row, self._column] = 1.0
        self._board[self._all, -1, self._paddle] = 1.0

    def save_state(self) -> SavedState:
        return {
            **self._records.save_state(),
            "row": self._row.copy(),
            "column": self._column.copy(),
            "paddle": self._paddle.copy(),
            "random": generator_state(self._random),
        }

    def load_state(self, state: SavedState) -> Step:
        self._row[:] = state["row"]
        self._column[:] = state["column"]
        self._paddle[:] = state["paddle"]
        self._random = generator_from_state(state["random"])
        return self._records.load_state(state)

    def render(self) -> Array | None:
        if not self._draws:
            return None
        pixels = np.kron(self._board[0], np.full((32, 32), 255.0)).astype(np.uint8)
        return np.repeat(pixels[:, :, None], 3, axis=2)
