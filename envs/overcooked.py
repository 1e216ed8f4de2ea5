"""Overcooked: two cooks serve soups (Carroll et al. 2019, arXiv:1910.05789), by the package `overcooked`.

Both get what either serves. On the way there each gets a shaped reward of its own, whose weight may fall to 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, PositiveInt

from envs._overcooked_drawing import draw
from envs._overcooked_kitchen import ACTIONS, COOKS, Kitchen, load_kitchen
from srlhpc.environment import (
    Array,
    ArraySpec,
    Discrete,
    Environment,
    Episode,
    EpisodeTracker,
    Kind,
    SavedState,
    Spaces,
    Step,
    empty_kind_step,
)
from srlhpc.specs.named_modules import EnvironmentSettings
from srlhpc.specs.schedule import Schedule, check_not_negative, value_at

FRAMES_PER_SECOND = 5
"""Fast enough to watch."""
_KIND = "cook"
_AGENTS = tuple(f"cook_{place}" for place in range(COOKS))


class Settings(EnvironmentSettings):
    """One kitchen and how its cooks are rewarded. What counts as their return is what they serve, 20 a soup."""

    requires: ClassVar[dict[str, str]] = {"overcooked": "overcooked"}

    layout: str = "cramped_room"
    """Name of a layout of the package for two, for example `asymmetric_advantages` or `forced_coordination`."""
    horizon: PositiveInt = 400
    """Steps after which an episode is cut (truncated)."""
    old_dynamics: bool = False
    """Let a soup cook as soon as three ingredients are in the pot, as the paper does; else a cook has to begin it."""
    shaping: Annotated[Schedule, AfterValidator(check_not_negative)] = 1.0
    """Weight of the shaped reward: 3 for an ingredient in a pot, 3 for a dish that is needed, 5 for a soup on it. A
    schedule counts the steps that one environment has played, not those that were trained: of S steps of a run, S /
    (actor ranks × ring × environments) come from each. Ranks that are started anew begin with it again."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    """Makes the environment.

    Raises:
        UserError: there is no such layout, it is not one for two, or its soups do not fit the old dynamics.
    """
    kitchen = load_kitchen(settings.layout, old_dynamics=settings.old_dynamics)
    return Overcooked(kitchen, num_environments, settings.horizon, settings.shaping, draws=render)


class Overcooked(Environment):
    """E kitchens, whose episodes begin and end together: nothing but the horizon ends one, and nothing is random.

    Observation: `[C, H, W]`, the package's lossless encoding, own layers before the other's. Its numbers are small and
    whole, and networks divide bytes by 255, so they are bytes of `Kitchen.scale` each: nothing is lost, and all that a
    network sees lies between 0 and 1.
    """

    def __init__(
        self, kitchen: Kitchen, num_environments: int, horizon: int, shaping: Schedule, *, draws: bool
    ) -> None:
        kind = Kind(_KIND, _AGENTS, {"obs": ArraySpec(kitchen.shape, "uint8")}, Discrete(ACTIONS))
        self.spaces = Spaces((kind,))
        self.num_environments = num_environments
        self._kitchen, self._horizon, self._shaping, self._draws = kitchen, horizon, shaping, draws
        self._now = empty_kind_step(kind, num_environments)
        self._now.alive[:] = True
        self._states: list[Any] = []
        self._time = self._steps = 0
        """Steps of these episodes, and of all since the reset."""
        self._shaped_returns = np.zeros(num_environments, np.float64)
        """What learners see of these episodes, as a mean of both cooks."""
        self._episodes = EpisodeTracker(num_environments, _AGENTS)

    def reset(self, seed: int) -> Step:  # noqa: ARG002
        self._steps = 0
        self._episodes.reset()
        return self._begin()

    def step(self, actions: Mapping[str, Array]) -> Step:
        return self._begin() if self._time == self._horizon else self._play(actions[_KIND])

    def _begin(self) -> Step:
        self._states = [self._kitchen.start() for _ in range(self.num_environments)]
        self._time = 0
        self._now.rewards[:] = self._shaped_returns[:] = 0.0
        self._show()
        return Step({_KIND: self._now})

    def _play(self, actions: Array) -> Step:
        served = np.zeros((self.num_environments, 1))
        weight = value_at(self._shaping, self._steps)
        for env, chosen in enumerate(actions.tolist()):
            self._states[env], sparse, shaped = self._kitchen.step(self._states[env], chosen)
            served[env] = sum(sparse)
            self._now.rewards[env] = shaped
        self._now.rewards *= weight
        self._now.rewards += served
        self._shaped_returns += self._now.rewards.mean(axis=1)
        self._time += 1
        self._steps += 1
        self._show()
        everywhere = np.ones(self.num_environments, np.bool_)
        episodes = self._episodes.record(served, everywhere, everywhere & self._is_over)
        told = [replace(episode, metrics=self._metrics(episode, weight)) for episode in episodes]
        return Step({_KIND: self._now}, told)

    @property
    def _is_over(self) -> bool:
        return self._time == self._horizon

    def _metrics(self, episode: Episode, weight: float) -> dict[str, float]:
        return {"shaped_return": float(self._shaped_returns[episode.environment]), "shaping": weight}

    def _show(self) -> None:
        now = self._now
        now.first[:], now.valid[:], now.truncated[:] = self._time == 0, not self._is_over, self._is_over
        for state, seen in zip(self._states, now.observations["obs"], strict=True):
            self._kitchen.show(state, seen, steps_left=self._horizon - self._time)

    def save_state(self) -> SavedState:
        kitchens = json.dumps([self._kitchen.to_text(state) for state in self._states]).encode()
        return {
            "kitchens": np.frombuffer(kitchens, np.uint8).copy(),
            "clocks": np.array([self._time, self._steps], np.int64),
            "rewards": self._now.rewards.copy(),
            "shaped_returns": self._shaped_returns.copy(),
            **self._episodes.save_state(),
        }

    def load_state(self, state: SavedState) -> Step:
        texts: Sequence[str] = json.loads(state["kitchens"].tobytes())
        self._states = [self._kitchen.from_text(text) for text in texts]
        self._time, self._steps = state["clocks"].tolist()
        self._now.rewards[:], self._shaped_returns[:] = state["rewards"], state["shaped_returns"]
        self._episodes.load_state(state)
        self._show()
        return Step({_KIND: self._now})

    def render(self) -> Array | None:
        return draw(self._kitchen.world, self._states[0]) if self._draws else None

    @property
    def render_fps(self) -> float | None:
        return FRAMES_PER_SECOND
