"""Any PettingZoo parallel environment by import path: several agents, E copies stepped one after the other.

Agents of equal spaces form a kind. Agents may leave (terminated or truncated, or just gone) and appear; when none is
left, the copy's episode has ended.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from envs._action_masks import split_mask, write_mask
from envs._gymnasium_actions import ActionCodec, action_codec
from envs._gymnasium_spaces import ObservationKeys, observation_keys, picture
from srlhpc.environment import (
    Array,
    BoolArray,
    Environment,
    EpisodeTracker,
    Kind,
    KindStep,
    Spaces,
    Step,
    empty_kind_step,
)
from srlhpc.objects import UserError
from srlhpc.specs.modules import EnvironmentSettings


class Settings(EnvironmentSettings):
    """A PettingZoo parallel environment."""

    requires: ClassVar[dict[str, str]] = {"pettingzoo": "pettingzoo"}

    env: str
    """Import path of the module that has `parallel_env`, for example `mpe2.simple_spread_v3`; `module:function` names
    another function."""
    kwargs: dict[str, Any] = {}
    """Arguments of that function."""


def build(settings: Settings, copies: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment.

    Raises:
        UserError: there is no such environment, or its spaces are not understood.
    """
    make = _find(settings.env)
    arguments = {**settings.kwargs, "render_mode": "rgb_array"} if render else settings.kwargs
    try:
        simulators = [make(**arguments) for _ in range(copies)]
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise UserError(f"environment.kwargs of '{settings.env}': {error}") from None
    return from_simulators(simulators, seed, f"environment '{settings.env}'")


def _find(path: str) -> Callable[..., Any]:
    module_name, _, function = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        hint = "; pip install 'srlhpc[pettingzoo]'" if module_name.split(".")[0] in ("mpe2", "pettingzoo") else ""
        raise UserError(f"environment.env: cannot import '{module_name}' ({error}){hint}") from None
    try:
        make: Callable[..., Any] = getattr(module, function or "parallel_env")
    except AttributeError:
        raise UserError(
            f"environment.env: '{module_name}' has no '{function or 'parallel_env'}'; name a function that makes a "
            "PettingZoo ParallelEnv as module:function"
        ) from None
    return make


def from_simulators(simulators: Sequence[Any], seed: int, where: str) -> Environment:
    """Copies of one ParallelEnv as one environment; errors as in `build`."""
    first = simulators[0]
    if not getattr(first, "possible_agents", None):
        raise UserError(f"{where} has no possible_agents; the adapter must know all agents that may ever appear")
    _, infos = first.reset(seed=seed)
    return PettingZooEnvironment(simulators, _teams(first, infos, where))


@dataclass(frozen=True)
class _Team:
    """A kind and how to talk to its agents."""

    kind: Kind
    observations: ObservationKeys
    codec: ActionCodec
    mask_in_observation: bool


def _teams(simulator: Any, infos: Mapping[str, Any], where: str) -> list[_Team]:
    groups: list[tuple[Any, Any, list[str]]] = []
    for agent in simulator.possible_agents:
        spaces = simulator.observation_space(agent), simulator.action_space(agent)
        members = next((names for seen, acts, names in groups if (seen, acts) == spaces), None)
        if members is None:
            groups.append((*spaces, [agent]))
        else:
            members.append(agent)
    teams: list[_Team] = []
    for seen, acts, agents in groups:
        there = f"{where}, agent '{agents[0]}'"
        shown, mask_in_observation = split_mask(seen)
        keys, codec = observation_keys(shown, there), action_codec(acts, there)
        has_masks = mask_in_observation or any("action_mask" in infos.get(agent, {}) for agent in agents)
        name = _kind_name(agents, [team.kind.name for team in teams])
        teams.append(
            _Team(Kind(name, tuple(agents), keys.specs, codec.space, has_masks), keys, codec, mask_in_observation)
        )
    return teams


def _kind_name(agents: Sequence[str], taken: Sequence[str]) -> str:
    """What the agents' names have before their numbers; `agents` if that differs."""
    prefixes = {re.sub(r"[_-]?\d+$", "", agent) for agent in agents}
    name = prefixes.pop() if len(prefixes) == 1 else "agents"
    name = name or "agents"
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}_{number}", number + 1
    return unique


@dataclass(frozen=True)
class _Seat:
    """Where one agent's values are."""

    team: _Team
    now: KindStep
    index: int


class PettingZooEnvironment(Environment):
    """Parallel environments behind the contract."""

    def __init__(self, simulators: Sequence[Any], teams: Sequence[_Team]) -> None:
        self.spaces = Spaces(tuple(team.kind for team in teams))
        self.copies = len(simulators)
        self._simulators = simulators
        self._teams = teams
        self._now = {team.kind.name: empty_kind_step(team.kind, self.copies) for team in teams}
        self._seats = {
            agent: _Seat(team, self._now[team.kind.name], index)
            for team in teams
            for index, agent in enumerate(team.kind.agents)
        }
        self._acting: list[list[str]] = [[] for _ in simulators]
        """Agents whose record of a copy is valid now; none while the copy waits for its reset."""
        self._ended: BoolArray = np.zeros(self.copies, np.bool_)
        self._episodes = EpisodeTracker(self.copies, list(self._seats))

    def reset(self, seed: int) -> Step:
        seeds = np.random.SeedSequence(seed).generate_state(self.copies).tolist()
        self._clear()
        for copy, copy_seed in enumerate(seeds):
            self._restart(copy, copy_seed)
        self._ended[:] = False
        self._episodes.reset()
        return Step(self._now)

    def step(self, actions: Mapping[str, Array]) -> Step:
        decoded = {team.kind.name: self._decode(team, actions[team.kind.name]) for team in self._teams}
        ended = self._ended.copy()
        valid = np.concatenate([now.valid for now in self._now.values()], axis=1)
        self._clear()
        for copy, simulator in enumerate(self._simulators):
            if ended[copy]:
                self._restart(copy, None)
            else:
                self._play(copy, simulator, decoded)
            self._ended[copy] = not self._acting[copy]
        rewards = np.concatenate([now.rewards for now in self._now.values()], axis=1)
        return Step(self._now, self._episodes.record(rewards, valid, self._ended))

    def _decode(self, team: _Team, actions: Array) -> Sequence[Any]:
        valid = self._now[team.kind.name].valid
        if not valid.all():
            actions = actions.copy()
            actions[~valid] = team.codec.idle
        rows = self.copies * len(team.kind.agents)
        return team.codec.one_by_one(team.codec.decode(actions.reshape(rows, *actions.shape[2:])))

    def _clear(self) -> None:
        for now in self._now.values():
            for flags in (now.first, now.valid, now.alive, now.terminated, now.truncated):
                flags[:] = False
            now.rewards[:] = 0.0

    def _restart(self, copy: int, seed: int | None) -> None:
        simulator = self._simulators[copy]
        observations, infos = simulator.reset() if seed is None else simulator.reset(seed=seed)
        self._acting[copy] = list(simulator.agents)
        for agent in simulator.agents:
            seat = self._seats[agent]
            seat.now.first[copy, seat.index] = seat.now.valid[copy, seat.index] = True
            seat.now.alive[copy, seat.index] = True
        self._observe(copy, set(simulator.agents), observations, infos)

    def _play(self, copy: int, simulator: Any, decoded: Mapping[str, Sequence[Any]]) -> None:
        acted = self._acting[copy]
        chosen = {}
        for agent in simulator.agents:
            seat = self._seats[agent]
            agents = seat.team.kind.agents
            chosen[agent] = decoded[seat.team.kind.name][copy * len(agents) + seat.index]
        observations, rewards, terminated, truncated, infos = simulator.step(chosen)
        # Some environments leave agents in their list after the end of those.
        acting = [a for a in simulator.agents if not terminated.get(a, False) and not truncated.get(a, False)]
        for agent in acted:
            seat = self._seats[agent]
            seat.now.rewards[copy, seat.index] = rewards.get(agent, 0.0)
            if agent not in acting:
                # An agent that is gone without a word has left for good: nothing to bootstrap from.
                is_cut = truncated.get(agent, False) and not terminated.get(agent, False)
                (seat.now.truncated if is_cut else seat.now.terminated)[copy, seat.index] = True
        for agent in acting:
            seat = self._seats[agent]
            seat.now.first[copy, seat.index] = agent not in acted
            seat.now.valid[copy, seat.index] = True
        for agent in acting or acted:
            seat = self._seats[agent]
            seat.now.alive[copy, seat.index] = True
        self._acting[copy] = acting
        self._observe(copy, {*acted, *acting}, observations, infos)

    def _observe(
        self, copy: int, seen: set[str], observations: Mapping[str, Any], infos: Mapping[str, Mapping[str, Any]]
    ) -> None:
        for agent, seat in self._seats.items():
            place = (copy, seat.index)
            raw = observations.get(agent) if agent in seen else None
            if raw is None:
                for array in seat.now.observations.values():
                    array[place] = 0
            else:
                seat.team.observations.write(raw, seat.now.observations, place)
            if seat.now.action_masks is not None:
                source = raw if seat.team.mask_in_observation else infos.get(agent)
                mask = None if source is None else source.get("action_mask")
                write_mask(mask, seat.team.codec.space, seat.now.action_masks[place])

    def render(self) -> Array | None:
        return picture(self._simulators[0])

    def close(self) -> None:
        for simulator in self._simulators:
            simulator.close()
