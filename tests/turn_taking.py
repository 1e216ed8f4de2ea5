"""Games in turns that follow a script: whose turn it is, who gets what and how it ends come exactly when a test wants.

What an agent observes tells where it is: (episode + 1, time + 1, agent + 1), all counted from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

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


@dataclass(frozen=True)
class Game:
    """One episode.

    Attributes:
        movers: whose turn each record is.
        rewards: record to what each agent gets for it.
        end: how it ends, for all.
    """

    movers: Sequence[int]
    rewards: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    end: Literal["terminated", "truncated"] = "terminated"


class TurnTaking(Environment):
    """Plays `games[env]` one after the other, over and over. Seeds change nothing."""

    def __init__(self, games: Sequence[Sequence[Game]], agents: Sequence[str] = ("a", "b")) -> None:
        observations = {"obs": ArraySpec((3,), "float32")}
        self.spaces = Spaces((Kind("agent", tuple(agents), observations, Discrete(4), turn_steps=len(agents)),))
        self.num_environments = len(games)
        self._games = games
        self._now = empty_kind_step(self.spaces.kinds[0], self.num_environments)
        self._episode, self._time = (np.zeros(self.num_environments, np.int64) for _ in range(2))
        self._tracker = EpisodeTracker(self.num_environments, agents)

    def _game(self, env: int) -> Game:
        games = self._games[env]
        return games[int(self._episode[env]) % len(games)]

    def reset(self, seed: int) -> Step:  # noqa: ARG002
        self._episode[:] = self._time[:] = 0
        self._tracker.reset()
        for env in range(self.num_environments):
            self._look(env)
        return Step({"agent": self._now})

    def step(self, actions: Mapping[str, Array]) -> Step:  # noqa: ARG002
        playing = np.array([self._time[env] < len(self._game(env).movers) for env in range(self.num_environments)])
        self._time = np.where(playing, self._time + 1, 0)
        self._episode += ~playing
        for env in range(self.num_environments):
            self._look(env)
        ended = (self._now.terminated | self._now.truncated).all(axis=1)
        return Step({"agent": self._now}, self._tracker.record(self._now.rewards, playing, ended))

    def _look(self, env: int) -> None:
        game, time, now = self._game(env), int(self._time[env]), self._now
        assert now.waits is not None
        is_over = time == len(game.movers)
        for agent in range(now.valid.shape[1]):
            place = (env, agent)
            acts = not is_over and game.movers[time] == agent
            now.alive[place] = True
            now.valid[place], now.waits[place] = acts, not (acts or is_over)
            now.first[place] = acts and agent not in game.movers[:time]
            now.rewards[place] = game.rewards.get(time - 1, {}).get(agent, 0.0)
            now.terminated[place] = is_over and game.end == "terminated"
            now.truncated[place] = is_over and game.end == "truncated"
            now.observations["obs"][place] = (self._episode[env] + 1, time + 1, agent + 1)

    def save_state(self) -> SavedState:
        return {**self._tracker.save_state(), "episode": self._episode.copy(), "time": self._time.copy()}

    def load_state(self, state: SavedState) -> Step:
        self._tracker.load_state(state)
        self._episode, self._time = state["episode"].copy(), state["time"].copy()
        for env in range(self.num_environments):
            self._look(env)
        return Step({"agent": self._now})
