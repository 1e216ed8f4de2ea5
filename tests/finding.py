"""An environment of entities: each claims that some choice is right, and only the visible one tells the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from envs._generators import generator_from_state, generator_state
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

ENTITIES, CHOICES, PLACES = 5, 3, 6
KEYS: dict[str, Any] = {
    "own": ["self"],
    "rings": {"around": {"channels": 2}},
    "sets": {"claims": {"visible": "visible", "exists": "exists"}},
}
"""The observations as an entity network's settings name them."""


class Settings(EnvironmentSettings):
    """Nothing to set."""

    def spaces(self) -> Spaces:
        seen = {
            "self": ArraySpec((2,), "float32"),
            "around": ArraySpec((1, PLACES), "float32"),
            "claims": ArraySpec((ENTITIES, CHOICES), "float32"),
            "visible": ArraySpec((ENTITIES,), "bool"),
            "exists": ArraySpec((ENTITIES,), "bool"),
        }
        return Spaces((Kind("agents", ("agent",), seen, Discrete(CHOICES)),))


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    return Finding(settings, num_environments)


class Finding(Environment):
    """Episodes of 8 steps that are cut off. The last entity does not exist; what is in `self` and `around` is noise."""

    LENGTH = 8

    def __init__(self, settings: Settings, num_environments: int) -> None:
        self.spaces, self.num_environments = settings.spaces(), num_environments
        self._now = empty_kind_step(self.spaces.kinds[0], num_environments)
        self._now.alive[:] = True
        self._now.observations["exists"][..., :-1] = True
        self._tracker = EpisodeTracker(num_environments, ("agent",))
        self.reset(0)

    def reset(self, seed: int) -> Step:
        self._random = np.random.default_rng(seed)
        self._clock = np.arange(self.num_environments) % self.LENGTH
        self._ended = np.zeros(self.num_environments, bool)
        self._tracker.reset()
        self._draw()
        return self._step(np.zeros(self.num_environments), first=np.ones(self.num_environments, bool))

    def step(self, actions: Mapping[str, Array]) -> Step:
        chosen, first = actions["agents"][:, 0], self._ended
        rewards = np.where(first, 0.0, chosen == self._claims[np.arange(self.num_environments), self._honest])
        self._ended = ~first & (self._clock == self.LENGTH - 1)
        self._clock = np.where(first, 0, self._clock + 1)
        self._draw()
        step = self._step(rewards, first=first)
        step.episodes = self._tracker.record(self._now.rewards, ~first, self._ended)
        return step

    def _draw(self) -> None:
        self._claims = self._random.integers(CHOICES, size=(self.num_environments, ENTITIES))
        self._honest = self._random.integers(ENTITIES - 1, size=self.num_environments)
        for key in ("self", "around"):
            seen = self._now.observations[key]
            seen[...] = self._random.standard_normal(seen.shape)

    def _step(self, rewards: Array, *, first: Array) -> Step:
        now = self._now
        now.observations["claims"][:, 0] = np.eye(CHOICES)[self._claims]
        now.observations["visible"][:, 0] = np.arange(ENTITIES) == self._honest[:, None]
        now.first[:, 0], now.valid[:, 0] = first, ~self._ended
        now.rewards[:, 0], now.truncated[:, 0] = rewards, self._ended
        return Step({"agents": now})

    def save_state(self) -> SavedState:
        seen = {f"obs.{key}": self._now.observations[key].copy() for key in ("self", "around")}
        arrays = {"claims": self._claims, "honest": self._honest, "clock": self._clock, "ended": self._ended}
        last = {"first": self._now.first.copy(), "rewards": self._now.rewards.copy()}
        return {**self._tracker.save_state(), **arrays, **seen, **last, "generator": generator_state(self._random)}

    def load_state(self, state: SavedState) -> Step:
        self._tracker.load_state(state)
        self._claims, self._honest = np.array(state["claims"]), np.array(state["honest"])
        self._clock, self._ended = np.array(state["clock"]), np.array(state["ended"])
        self._random = generator_from_state(np.asarray(state["generator"], np.uint64))
        for key in ("self", "around"):
            self._now.observations[key][...] = state[f"obs.{key}"]
        return self._step(state["rewards"][:, 0], first=state["first"][:, 0])
