"""Rock-paper-scissors: two agents choose at once, and one step is an episode. Best play is a mixture.

All environments are stepped as one numpy vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from pydantic import PositiveFloat

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
from srlhpc.specs.named_modules import EnvironmentSettings, Panel

_AGENTS = ("agent_0", "agent_1")
_KIND = "agent"
_CHOICES = ("rock", "paper", "scissors")
_ROCK, _SCISSORS = 0, 2


class Settings(EnvironmentSettings):
    """Rock-paper-scissors; who wins gets 1 and the other -1, a draw brings nothing."""

    rock_wins: PositiveFloat = 1.0
    """What rock gets from scissors. With w instead of 1 best play is 1 : w : 1."""

    def spaces(self) -> Spaces:
        return Spaces((Kind(_KIND, _AGENTS, {"obs": ArraySpec((1,), "float32")}, Discrete(len(_CHOICES))),))

    def statistics(self) -> tuple[Panel, ...]:
        return (Panel("choices of both agents", "share", {name: name for name in _CHOICES}),)


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    return RockPaperScissors(settings, num_environments)


class RockPaperScissors(Environment):
    """Observation: 1, since there is nothing to see. Actions: rock, paper, scissors.

    Metrics of an episode are how often each was chosen, as a share of both agents' choices.
    """

    def __init__(self, settings: Settings, num_environments: int) -> None:
        self.spaces = settings.spaces()
        self.num_environments = num_environments
        # Each choice beats the one before it, and the first the last.
        self._payoffs = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
        self._payoffs[_ROCK, _SCISSORS], self._payoffs[_SCISSORS, _ROCK] = settings.rock_wins, -settings.rock_wins
        self._now = empty_kind_step(self.spaces.kinds[0], num_environments)
        self._now.alive[:] = True
        self._now.observations["obs"][:] = 1.0
        self._ended = np.zeros(num_environments, np.bool_)
        self._episodes = EpisodeTracker(num_environments, _AGENTS)

    def reset(self, seed: int) -> Step:  # noqa: ARG002
        now = self._now
        self._ended[:] = now.terminated[:] = False
        now.first[:] = now.valid[:] = True
        now.rewards[:] = 0.0
        self._episodes.reset()
        return Step({_KIND: now})

    def step(self, actions: Mapping[str, Array]) -> Step:
        now, waited = self._now, self._ended
        chosen = actions[_KIND].clip(0, len(_CHOICES) - 1)
        payoffs = np.where(waited, 0.0, self._payoffs[chosen[:, 0], chosen[:, 1]])
        now.rewards[:] = np.stack([payoffs, -payoffs], axis=1)
        ended = ~waited
        now.terminated[:] = ended[:, None]
        now.first[:] = now.valid[:] = waited[:, None]
        self._ended = ended
        episodes = self._episodes.record(now.rewards, ended, ended)
        return Step({_KIND: now}, [_with_choices(episode, chosen) for episode in episodes])

    def save_state(self) -> SavedState:
        now = self._now
        flags = {name: getattr(now, name).copy() for name in ("first", "valid", "rewards", "terminated")}
        return {"ended": self._ended.copy(), **flags, **self._episodes.save_state()}

    def load_state(self, state: SavedState) -> Step:
        self._ended = state["ended"].copy()
        for name in ("first", "valid", "rewards", "terminated"):
            getattr(self._now, name)[:] = state[name]
        self._episodes.load_state(state)
        return Step({_KIND: self._now})


def _with_choices(episode: Episode, chosen: Array) -> Episode:
    counts = np.bincount(chosen[episode.environment], minlength=len(_CHOICES))
    return replace(episode, metrics=dict(zip(_CHOICES, (counts / len(_AGENTS)).tolist(), strict=True)))
