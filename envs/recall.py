"""Recall: a cue is shown once and asked for later; only a policy with memory does better than chance.

All environments are stepped as one numpy vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field, NonNegativeInt

from envs._generators import generator_from_state, generator_state
from envs._single_agent import AGENT, SingleAgentRecords, single_agent_spaces
from srlhpc.environment import Array, ArraySpec, BoolArray, Discrete, Environment, SavedState, Spaces, Step
from srlhpc.specs.named_modules import EnvironmentSettings


class Settings(EnvironmentSettings):
    """How many cues there are and how long they must be kept. Best return 1, by chance 1 / `choices`."""

    choices: Annotated[int, Field(ge=2)] = 4
    """Cues, and actions."""
    delay: NonNegativeInt = 4
    """Blank steps between the cue and the query; an episode has `delay` + 2 steps."""

    def spaces(self) -> Spaces:
        return single_agent_spaces({"obs": ArraySpec((self.choices + 1,), "float32")}, Discrete(self.choices))


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    return Recall(settings, num_environments, seed)


class Recall(Environment):
    """Observation: the cue as one-hot in the first step, then zeros; the last element is 1 in the query step.

    The query step's action is rewarded with 1 if it equals the cue; all other rewards are 0.
    """

    def __init__(self, settings: Settings, num_environments: int, seed: int) -> None:
        self.spaces = settings.spaces()
        self.num_environments = num_environments
        self._choices, self._query_step = settings.choices, settings.delay + 1
        self._random = np.random.default_rng(seed)
        self._records = SingleAgentRecords(self.spaces, num_environments)
        self._time = np.zeros(num_environments, np.int64)
        self._cue = np.zeros(num_environments, np.int64)

    def reset(self, seed: int) -> Step:
        self._random = np.random.default_rng(seed)
        self._restart(np.ones(self.num_environments, np.bool_))
        self._show()
        return self._records.start()

    def step(self, actions: Mapping[str, Array]) -> Step:
        ended, now = self._records.ended, self._records.now
        answered = (self._time == self._query_step) & ~ended
        now.rewards[:, 0] = answered & (actions[AGENT][:, 0] == self._cue)
        now.terminated[:, 0] = answered
        self._time += 1
        if ended.any():
            self._restart(ended)
        self._show()
        return self._records.finish()

    def _restart(self, which: BoolArray) -> None:
        self._time[which] = 0
        self._cue[which] = self._random.integers(self._choices, size=int(which.sum()))

    def _show(self) -> None:
        observations = self._records.now.observations["obs"][:, 0]
        observations[:] = 0.0
        showing = np.flatnonzero(self._time == 0)
        observations[showing, self._cue[showing]] = 1.0
        observations[:, -1] = self._time == self._query_step

    def save_state(self) -> SavedState:
        return {
            **self._records.save_state(),
            "time": self._time.copy(),
            "cue": self._cue.copy(),
            "random": generator_state(self._random),
        }

    def load_state(self, state: SavedState) -> Step:
        self._time[:] = state["time"]
        self._cue[:] = state["cue"]
        self._random = generator_from_state(state["random"])
        return self._records.load_state(state)
