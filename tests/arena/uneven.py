"""A game of one agent against two: each gets its action, 0 or 1, the lone one ten more.

An episode has one step, and one more where the lone one begins with action 1; only actions of the first step count.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from srlhpc.environment import (
    Array,
    ArraySpec,
    Discrete,
    Environment,
    Episode,
    Kind,
    Spaces,
    Step,
    empty_kind_step,
)
from srlhpc.specs.named_modules import EnvironmentSettings

AGENTS = ("lone", "pack_0", "pack_1")


class Settings(EnvironmentSettings):
    leaves: bool = False
    """Whether episodes are told as if the pack had not been there."""

    def spaces(self) -> Spaces:
        return Spaces((Kind("agent", AGENTS, {"obs": ArraySpec((1,), "float32")}, Discrete(2)),))


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    return Uneven(settings, num_environments)


class Uneven(Environment):
    def __init__(self, settings: Settings, num_environments: int) -> None:
        self.spaces, self.num_environments, self._leaves = settings.spaces(), num_environments, settings.leaves
        self._now = empty_kind_step(self.spaces.kinds[0], num_environments)
        self._now.alive[:] = True
        self._time = np.zeros(num_environments, np.int64)
        self._first = np.zeros((num_environments, len(AGENTS)), np.int64)

    def reset(self, seed: int) -> Step:
        now = self._now
        self._time[:] = 0
        now.first[:] = now.valid[:] = True
        now.terminated[:], now.rewards[:] = False, 0.0
        return Step({"agent": now})

    def step(self, actions: Mapping[str, Array]) -> Step:
        now, begins, waited = self._now, self._time == 0, self._time < 0
        self._first[begins] = actions["agent"][begins]
        returns = self._first + np.array([10, 0, 0])
        self._time += 1
        ended = ~waited & (self._time == 1 + self._first[:, 0])
        now.rewards[:] = np.where(begins[:, None], returns, 0.0)
        now.terminated[:] = ended[:, None]
        now.first[:], now.valid[:] = waited[:, None], ~ended[:, None]
        episodes = [self._episode(env, returns[env].tolist()) for env in np.flatnonzero(ended).tolist()]
        self._time[ended] = -1
        return Step({"agent": now}, episodes)

    def _episode(self, env: int, returns: list[float]) -> Episode:
        told = dict(zip(AGENTS, map(float, returns), strict=True))
        return Episode(env, int(self._time[env]), {"lone": told["lone"]} if self._leaves else told)
