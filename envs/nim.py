"""Nim with one heap: players take stones in turn, and who takes the last one wins (Bouton 1901).

Two players who take at most k win by leaving a multiple of k + 1. All environments are stepped as one numpy vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le

from srlhpc.environment import (
    Array,
    ArraySpec,
    Discrete,
    Environment,
    EpisodeTracker,
    Kind,
    SavedState,
    Spaces,
    Step,
    empty_kind_step,
)
from srlhpc.specs.named_modules import EnvironmentSettings

_KIND = "player"


class Settings(EnvironmentSettings):
    """The heap and who plays. The winner gets 1, the others lose as much together."""

    stones: Annotated[int, Ge(1), Le(1000)] = 21
    """Stones at the beginning."""
    most: Annotated[int, Ge(1), Le(100)] = 3
    """Most stones that are taken at once; at least one is."""
    players: Annotated[int, Ge(2), Le(100)] = 2
    """Players, named `player_0` on; this is their order."""

    def spaces(self) -> Spaces:
        agents = tuple(f"player_{place}" for place in range(self.players))
        observation = ArraySpec((self.stones + 1,), "float32")
        kind = Kind(_KIND, agents, {"heap": observation}, Discrete(self.most), True, turn_steps=self.players)
        return Spaces((kind,))


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    return Nim(settings, num_environments)


class Nim(Environment):
    """Observation: how many stones are left, as one-hot. Choice i takes i + 1 of them."""

    def __init__(self, settings: Settings, num_environments: int) -> None:
        self.spaces = settings.spaces()
        self.num_environments = num_environments
        self._settings = settings
        self._now = empty_kind_step(self.spaces.kinds[0], num_environments)
        self._now.alive[:] = True
        self._heap = np.zeros(num_environments, np.int64)
        self._moves = np.zeros(num_environments, np.int64)
        self._episodes = EpisodeTracker(num_environments, self.spaces.kinds[0].agents)

    def reset(self, seed: int) -> Step:  # noqa: ARG002
        self._heap[:], self._moves[:] = self._settings.stones, 0
        self._now.rewards[:], self._now.terminated[:] = 0.0, False
        self._episodes.reset()
        self._show()
        return Step({_KIND: self._now})

    def step(self, actions: Mapping[str, Array]) -> Step:
        now, players, playing = self._now, self._settings.players, self._heap > 0
        rows, mover = np.arange(self.num_environments), self._moves % players
        taken = (actions[_KIND][rows, mover].clip(0, self._settings.most - 1) + 1).clip(max=self._heap)
        self._heap = np.where(playing, self._heap - taken, self._settings.stones)
        self._moves = np.where(playing, self._moves + 1, 0)
        ended = playing & (self._heap == 0)
        now.rewards[:] = np.where(ended, -1 / (players - 1), 0.0)[:, None]
        now.rewards[rows, mover] = ended
        now.terminated[:] = ended[:, None]
        self._show()
        return Step({_KIND: now}, self._episodes.record(now.rewards, playing, ended))

    def _show(self) -> None:
        now, players, playing = self._now, self._settings.players, self._heap > 0
        moves = np.arange(players) == (self._moves % players)[:, None]
        assert now.waits is not None
        assert now.action_masks is not None
        now.valid[:] = moves & playing[:, None]
        now.waits[:] = ~moves & playing[:, None]
        now.first[:] = now.valid & (self._moves < players)[:, None]
        now.observations["heap"][:] = np.eye(self._settings.stones + 1, dtype=np.float32)[self._heap][:, None]
        allowed = np.arange(self._settings.most) < self._heap[:, None]
        allowed[:, 0] = True
        now.action_masks[:] = allowed[:, None]

    def save_state(self) -> SavedState:
        brought = {"rewards": self._now.rewards.copy(), "terminated": self._now.terminated.copy()}
        return {"heap": self._heap.copy(), "moves": self._moves.copy(), **brought, **self._episodes.save_state()}

    def load_state(self, state: SavedState) -> Step:
        self._heap, self._moves = state["heap"].copy(), state["moves"].copy()
        self._now.rewards[:], self._now.terminated[:] = state["rewards"], state["terminated"]
        self._episodes.load_state(state)
        self._show()
        return Step({_KIND: self._now})
