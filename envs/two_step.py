"""The two-step game: two agents who must coordinate, where adding up values fails (Rashid et al. 2018, section 5).

In the first step only agent 0 matters: its action chooses one of two matrices of payoffs. In the second both choose.
All environments are stepped as one numpy vector.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

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

_AGENTS = ("agent_0", "agent_1")
_KIND = "agent"
_START, _PLACES = 0, 3
"""The first place, and how many there are: the start and one for each matrix."""
_PAYOFFS = np.array([[[0, 0], [0, 0]], [[7, 7], [7, 7]], [[0, 1], [1, 8]]], np.float32)
"""`[place, action of agent 0, action of agent 1]`."""


class Settings(EnvironmentSettings):
    """The two-step game. The best return is 8, the best that needs no coordination 7."""

    def spaces(self) -> Spaces:
        observation = ArraySpec((_PLACES + len(_AGENTS),), "float32")
        state = ArraySpec((_PLACES,), "float32")
        return Spaces((Kind(_KIND, _AGENTS, {"obs": observation}, Discrete(2), state=state),))


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    return TwoStep(settings, num_environments)


class TwoStep(Environment):
    """Observation: where the game is, as one-hot of three, then who one is, of two. The state is the former.

    Both agents are rewarded with the payoff of the second step.
    """

    def __init__(self, settings: Settings, num_environments: int) -> None:
        self.spaces = settings.spaces()
        self.num_environments = num_environments
        self._now = empty_kind_step(self.spaces.kinds[0], num_environments)
        self._now.alive[:] = True
        self._place = np.zeros(num_environments, np.int64)
        self._ended = np.zeros(num_environments, np.bool_)
        self._episodes = EpisodeTracker(num_environments, _AGENTS)

    def reset(self, seed: int) -> Step:  # noqa: ARG002
        now = self._now
        self._place[:] = _START
        self._ended[:] = now.terminated[:] = False
        now.first[:] = now.valid[:] = True
        now.rewards[:] = 0.0
        self._episodes.reset()
        self._show()
        return Step({_KIND: now})

    def step(self, actions: Mapping[str, Array]) -> Step:
        now, waited, place = self._now, self._ended, self._place
        was_valid = ~waited
        chosen = actions[_KIND].clip(0, 1)
        ended = (place != _START) & was_valid
        payoffs = np.where(ended, _PAYOFFS[place, chosen[:, 0], chosen[:, 1]], 0.0)
        now.rewards[:] = payoffs[:, None]
        now.terminated[:] = ended[:, None]
        # Where the game ended it is shown once more where it was, and begins anew behind that.
        self._place = np.where(waited, _START, np.where(place == _START, 1 + chosen[:, 0], place))
        now.first[:] = waited[:, None]
        now.valid[:] = ~ended[:, None]
        self._ended = ended
        self._show()
        return Step({_KIND: now}, self._episodes.record(now.rewards, was_valid, ended))

    def _show(self) -> None:
        observations, state = self._now.observations["obs"], self._now.state
        assert state is not None
        state[:] = np.eye(_PLACES, dtype=np.float32)[self._place]
        observations[:, :, :_PLACES] = state[:, None]
        observations[:, :, _PLACES:] = np.eye(len(_AGENTS), dtype=np.float32)

    def save_state(self) -> SavedState:
        now = self._now
        flags = {name: getattr(now, name).copy() for name in ("first", "valid", "rewards", "terminated")}
        return {
            "place": self._place.copy(),
            "ended": self._ended.copy(),
            **flags,
            **self._episodes.save_state(),
        }

    def load_state(self, state: SavedState) -> Step:
        self._place, self._ended = state["place"].copy(), state["ended"].copy()
        for name in ("first", "valid", "rewards", "terminated"):
            getattr(self._now, name)[:] = state[name]
        self._episodes.load_state(state)
        self._show()
        return Step({_KIND: self._now})
