"""PettingZoo's games in turns behind the contract: E of them, stepped one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envs._aec import Aec
from envs._gymnasium_pictures import frames_per_second, picture
from envs._pettingzoo_seats import Seats, naming
from envs._pettingzoo_teams import Team
from srlhpc.environment import Array, BoolArray, Environment, EpisodeTracker, Spaces, Step


class PettingZooTurns(Environment):
    """One agent of each environment acts at a step; the others wait."""

    def __init__(self, simulators: Sequence[Aec], teams: Sequence[Team]) -> None:
        self.spaces = Spaces(tuple(team.kind for team in teams))
        self.num_environments = len(simulators)
        self._simulators = simulators
        self._seats = Seats(teams, len(simulators))
        self._agents = tuple(self._seats)
        self._playing: list[list[str]] = [[] for _ in simulators]
        """Agents that act or wait now; none while the environment waits for its reset."""
        self._acted: list[set[str]] = [set() for _ in simulators]
        """Agents among them that have had a turn in this episode."""
        self._episodes = EpisodeTracker(len(simulators), self._agents)

    def reset(self, seed: int) -> Step:
        seeds = np.random.SeedSequence(seed).generate_state(self.num_environments).tolist()
        self._seats.clear()
        for env, env_seed in enumerate(seeds):
            self._restart(env, env_seed)
        self._episodes.reset()
        return Step(self._seats.now)

    def step(self, actions: Mapping[str, Array]) -> Step:
        decoded = self._seats.decode(actions)
        there = np.array([[agent in playing for agent in self._agents] for playing in self._playing], np.bool_)
        self._seats.clear()
        for env in range(self.num_environments):
            if self._playing[env]:
                self._play(env, decoded)
            else:
                self._restart(env, None)
        rewards = np.concatenate([now.rewards for now in self._seats.now.values()], axis=1)
        ended: BoolArray = there.any(axis=1) & np.array([not playing for playing in self._playing])
        return Step(self._seats.now, self._episodes.record(rewards, there, ended))

    def _restart(self, env: int, seed: int | None) -> None:
        simulator = self._simulators[env]
        with naming(f"environment {env}, reset"):
            simulator.begin(seed)
            self._playing[env], self._acted[env] = simulator.agents, set()
            self._show(env, {})

    def _play(self, env: int, decoded: Mapping[str, Sequence[Any]]) -> None:
        simulator = self._simulators[env]
        with naming(f"environment {env}"):
            brought = simulator.play(self._seats.chosen(decoded, env, simulator.mover))
            for agent, reward in brought.rewards.items():
                now, place = self._seats.place(agent, env)
                now.rewards[place] = reward
            left = [agent for agent in self._playing[env] if agent not in brought.cut]
            for agent, is_cut in brought.cut.items():
                now, place = self._seats.place(agent, env)
                (now.truncated if is_cut else now.terminated)[place] = True
                now.alive[place] = is_cut or not left
                self._acted[env].discard(agent)
            self._playing[env] = left
            self._show(env, brought.last)

    def _show(self, env: int, last: Mapping[str, Any]) -> None:
        simulator, acted, playing = self._simulators[env], self._acted[env], self._playing[env]
        mover = simulator.mover if playing else None
        for agent in playing:
            now, place = self._seats.place(agent, env)
            acts = agent == mover
            assert now.waits is not None
            now.alive[place], now.valid[place], now.waits[place] = True, acts, not acts
            now.first[place] = acts and agent not in acted
        for agent in self._agents:
            acts = agent == mover
            seen = simulator.observe(agent) if acts else last.get(agent)
            self._seats.show(env, agent, seen, simulator.info(agent) if acts else None)
        if mover is not None:
            acted.add(mover)

    def render(self) -> Array | None:
        return picture(self._simulators[0].simulator)

    @property
    def render_fps(self) -> float | None:
        return frames_per_second(self._simulators[0].simulator)

    def close(self) -> None:
        for aec in self._simulators:
            aec.simulator.close()
