"""Any PettingZoo parallel environment by import path: several agents, E environments stepped one after the other.

Agents of equal spaces form a kind. Agents may leave (terminated or truncated, or just gone) and appear; when none is
left, the environment's episode has ended.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from envs._action_masks import MASK, unexpected_mask, write_mask
from envs._gymnasium_pictures import frames_per_second, picture, takes_no_render_mode
from envs._parallel import Parallel, Values, parallel_of
from envs._pettingzoo_names import what_to_do
from envs._pettingzoo_teams import Team, teams_of
from envs._returned_values import SimulatorError, checked_info, one_flag, one_number
from srlhpc.environment import Array, BoolArray, Environment, EpisodeTracker, KindStep, Spaces, Step, empty_kind_step
from srlhpc.errors import UserError
from srlhpc.specs.named_modules import EnvironmentSettings

log = logging.getLogger(__name__)


class Settings(EnvironmentSettings):
    """A PettingZoo parallel environment."""

    requires: ClassVar[dict[str, str]] = {"pettingzoo": "pettingzoo"}

    env: str
    """Import path of the module that has `parallel_env`, for example `mpe2.simple_spread_v3`; `module:function` names
    another function."""
    kwargs: dict[str, Any] = {}
    """Arguments of that function."""
    state: bool = False
    """Whether rules that learn from all agents together (`qmix`) get what the environment's `state()` returns; else
    they get all observations side by side."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment.

    Raises:
        UserError: there is no such environment, or its spaces are not understood.
    """
    make = _find(settings.env)
    arguments = {**settings.kwargs, "render_mode": "rgb_array"} if render else settings.kwargs
    try:
        simulators = [make(**arguments) for _ in range(num_environments)]
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        if render and "'render_mode'" in str(error):
            raise UserError(takes_no_render_mode(f"environment '{settings.env}'")) from None
        raise UserError(f"environment.kwargs of '{settings.env}': {error}") from None
    return from_simulators(simulators, seed, f"environment '{settings.env}'", gives_state=settings.state)


def _find(path: str) -> Callable[..., Any]:
    module_name, _, function = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        advice = what_to_do(module_name, error)
        raise UserError(f"environment.env: cannot import '{module_name}' ({error}){advice}") from None
    try:
        make: Callable[..., Any] = getattr(module, function or "parallel_env")
    except AttributeError:
        raise UserError(
            f"environment.env: '{module_name}' has no '{function or 'parallel_env'}'; name a function that makes a "
            "PettingZoo ParallelEnv as module:function"
        ) from None
    return make


def from_simulators(simulators: Sequence[Any], seed: int, where: str, *, gives_state: bool = False) -> Environment:
    """Several environments as one, with `gives_state` with their own state; errors as in `build`."""
    parallels = [parallel_of(simulator, where) for simulator in simulators]
    return PettingZooEnvironment(parallels, teams_of(parallels[0], seed, where, gives_state=gives_state))


@dataclass(frozen=True)
class _Seat:
    """Where one agent's values are."""

    team: Team
    now: KindStep
    index: int


class PettingZooEnvironment(Environment):
    """Parallel environments behind the contract."""

    def __init__(self, simulators: Sequence[Parallel], teams: Sequence[Team]) -> None:
        self.spaces = Spaces(tuple(team.kind for team in teams))
        self.num_environments = len(simulators)
        self._simulators = simulators
        self._teams = teams
        self._now = {team.kind.name: empty_kind_step(team.kind, self.num_environments) for team in teams}
        self._seats = {
            agent: _Seat(team, self._now[team.kind.name], index)
            for team in teams
            for index, agent in enumerate(team.kind.agents)
        }
        self._states = [now.state for now in self._now.values() if now.state is not None]
        self._acting: list[list[str]] = [[] for _ in simulators]
        """Agents whose record of an environment is valid now; none while the environment waits for its reset."""
        self._ended: BoolArray = np.zeros(self.num_environments, np.bool_)
        self._episodes = EpisodeTracker(self.num_environments, list(self._seats))

    def reset(self, seed: int) -> Step:
        seeds = np.random.SeedSequence(seed).generate_state(self.num_environments).tolist()
        self._clear()
        for env, env_seed in enumerate(seeds):
            self._restart(env, env_seed)
        self._ended[:] = False
        self._episodes.reset()
        return Step(self._now)

    def step(self, actions: Mapping[str, Array]) -> Step:
        decoded = {team.kind.name: self._decode(team, actions[team.kind.name]) for team in self._teams}
        ended = self._ended.copy()
        valid = np.concatenate([now.valid for now in self._now.values()], axis=1)
        self._clear()
        for env, simulator in enumerate(self._simulators):
            if ended[env]:
                self._restart(env, None)
            else:
                self._play(env, simulator, decoded)
            self._ended[env] = not self._acting[env]
        rewards = np.concatenate([now.rewards for now in self._now.values()], axis=1)
        return Step(self._now, self._episodes.record(rewards, valid, self._ended))

    def _decode(self, team: Team, actions: Array) -> Sequence[Any]:
        valid = self._now[team.kind.name].valid
        if not valid.all():
            actions = actions.copy()
            actions[~valid] = team.codec.idle
        rows = self.num_environments * len(team.kind.agents)
        return team.codec.one_by_one(team.codec.decode(actions.reshape(rows, *actions.shape[2:])))

    def _clear(self) -> None:
        for now in self._now.values():
            for flags in (now.first, now.valid, now.alive, now.terminated, now.truncated):
                flags[:] = False
            now.rewards[:] = 0.0

    def _restart(self, env: int, seed: int | None) -> None:
        simulator = self._simulators[env]
        with _naming(f"environment {env}, reset"):
            observations, infos = simulator.reset(seed)
            agents = simulator.agents
            for agent in agents:
                now, place = self._place(agent, env)
                now.first[place] = now.valid[place] = now.alive[place] = True
            self._acting[env] = agents
            self._observe(env, agents, observations, infos)

    def _place(self, agent: str, env: int) -> tuple[KindStep, tuple[int, int]]:
        seat = self._seats[agent]
        return seat.now, (env, seat.index)

    def _play(self, env: int, simulator: Parallel, decoded: Mapping[str, Sequence[Any]]) -> None:
        acted = self._acting[env]
        chosen = {}
        for agent in simulator.agents:
            seat = self._seats[agent]
            agents = seat.team.kind.agents
            chosen[agent] = decoded[seat.team.kind.name][env * len(agents) + seat.index]
        with _naming(f"environment {env}"):
            observations, *brought, infos = simulator.step(chosen)
            outcomes = {agent: _outcome(agent, *brought) for agent in {*acted, *simulator.agents}}
            # Some environments leave agents in their list after the end of those.
            acting = [agent for agent in simulator.agents if not outcomes[agent].is_over]
            self._write_ends(env, acted, acting, outcomes)
            self._acting[env] = acting
            self._observe(env, {*acted, *acting}, observations, infos)

    def _write_ends(
        self, env: int, acted: Sequence[str], acting: Sequence[str], outcomes: Mapping[str, _Outcome]
    ) -> None:
        for agent in acted:
            now, place = self._place(agent, env)
            now.rewards[place] = outcomes[agent].reward
            if agent not in acting:
                # An agent that is gone without a word has left for good: nothing to bootstrap from.
                is_cut = outcomes[agent].is_cut
                (now.truncated if is_cut else now.terminated)[place] = True
                # A cut one, as everyone at the end of the environment, is there for one more record: its value is asked
                # for.
                now.alive[place] = is_cut or not acting
        for agent in acting:
            now, place = self._place(agent, env)
            now.first[place] = agent not in acted
            now.valid[place] = now.alive[place] = True

    def _observe(
        self, env: int, seen: Collection[str], observations: Mapping[str, Any], infos: Mapping[str, Any]
    ) -> None:
        if self._states:
            state = self._simulators[env].state(self._states[0].shape[1:])
            for array in self._states:
                array[env] = state
        for agent, seat in self._seats.items():
            place = (env, seat.index)
            raw = observations.get(agent) if agent in seen else None
            try:
                self._write_seen(seat, place, agent, raw)
                self._write_mask(seat, place, raw, infos.get(agent))
            except SimulatorError as error:
                raise SimulatorError(f"agent '{agent}': {error}") from None

    def _write_seen(self, seat: _Seat, place: tuple[int, int], agent: str, raw: Any) -> None:
        if raw is not None:
            seat.team.observations.write(raw, seat.now.observations, place)
        elif seat.now.truncated[place]:
            _say_that_it_is_missing(agent)  # What it saw before is still there, and stays.
        else:
            for array in seat.now.observations.values():
                array[place] = 0

    def _write_mask(self, seat: _Seat, place: tuple[int, int], raw: Any, info: Mapping[str, Any] | None) -> None:
        source = raw if seat.team.mask_in_observation else checked_info({} if info is None else info)
        mask = None if source is None else source.get(MASK)
        if seat.now.action_masks is not None:
            acts = bool(seat.now.valid[place])
            write_mask(mask, seat.team.codec.space, seat.now.action_masks[place], acts=acts)
        elif mask is not None:
            raise unexpected_mask()

    def render(self) -> Array | None:
        return picture(self._simulators[0].simulator)

    @property
    def render_fps(self) -> float | None:
        return frames_per_second(self._simulators[0].simulator)

    def close(self) -> None:
        for parallel in self._simulators:
            parallel.simulator.close()


class _Outcome(NamedTuple):
    """What a step brought one agent."""

    reward: Any
    is_over: bool
    is_cut: bool


def _outcome(agent: str, rewards: Values, terminated: Values, truncated: Values) -> _Outcome:
    is_done = one_flag(terminated.get(agent, False), f"termination of '{agent}'")
    is_cut = one_flag(truncated.get(agent, False), f"truncation of '{agent}'")
    reward = one_number(rewards.get(agent, 0.0), f"the reward of '{agent}'")
    return _Outcome(reward, is_done or is_cut, is_cut and not is_done)


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Says where a simulator did something wrong."""
    try:
        yield
    except SimulatorError as error:
        raise SimulatorError(f"{where}: {error}") from None


@cache
def _say_that_it_is_missing(agent: str) -> None:
    log.warning(
        "agent '%s' was truncated without a last observation to estimate its value from; the one before is taken",
        agent,
    )
