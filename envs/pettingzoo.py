"""Any PettingZoo environment by import path: several agents, E environments stepped one after the other.

Agents of equal spaces form a kind. Agents may leave (terminated or truncated, or just gone) and appear; when none is
left, the environment's episode has ended. In AEC environments they take turns (envs/_pettingzoo_turns.py).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from annotated_types import Ge

from envs._aec import Aec
from envs._gymnasium_pictures import frames_per_second, picture, takes_no_render_mode
from envs._parallel import Parallel, Values, named_agents, parallel_of, takes_turns
from envs._pettingzoo_names import what_to_do
from envs._pettingzoo_seats import Seats, naming
from envs._pettingzoo_teams import Team, teams_of
from envs._pettingzoo_turns import PettingZooTurns
from envs._returned_values import one_flag, one_number
from srlhpc.environment import Array, BoolArray, Environment, EpisodeTracker, Spaces, Step
from srlhpc.errors import UserError
from srlhpc.specs.named_modules import EnvironmentSettings


class Settings(EnvironmentSettings):
    """A PettingZoo environment, parallel or AEC."""

    requires: ClassVar[dict[str, str]] = {"pettingzoo": "pettingzoo"}

    env: str
    """Import path of the module that has `parallel_env`, or else `env`, for example `mpe2.simple_spread_v3` or
    `pettingzoo.classic.connect_four_v3`; `module:function` names another function."""
    kwargs: dict[str, Any] = {}
    """Arguments of that function."""
    state: bool = False
    """Whether rules that learn from all agents together (`qmix`) get what the environment's `state()` returns; else
    they get all observations side by side."""
    turn_steps: Annotated[int, Ge(2)] | None = None
    """Most steps, as a rule, from one turn of an agent to its next where agents take turns, for the windows of replay.
    null: twice the number of agents, less one, since another may be first in a new round."""


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
    where = f"environment '{settings.env}'"
    return from_simulators(simulators, seed, where, gives_state=settings.state, turn_steps=settings.turn_steps)


def _find(path: str) -> Callable[..., Any]:
    module_name, _, function = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        advice = what_to_do(module_name, error)
        raise UserError(f"environment.env: cannot import '{module_name}' ({error}){advice}") from None
    names = (function,) if function else ("parallel_env", "env")
    made: Callable[..., Any] | None = next((getattr(module, name) for name in names if hasattr(module, name)), None)
    if made is None:
        raise UserError(
            f"environment.env: '{module_name}' has no '{names[0]}'; name a function that makes an environment of "
            "PettingZoo as module:function"
        )
    return made


def from_simulators(
    simulators: Sequence[Any], seed: int, where: str, *, gives_state: bool = False, turn_steps: int | None = None
) -> Environment:
    """Several environments as one, with `gives_state` with their own state; errors as in `build`."""
    if takes_turns(simulators[0]):
        games = [Aec(simulator, named_agents(simulator, where)) for simulator in simulators]
        steps = turn_steps or max(2, 2 * len(games[0].possible_agents) - 1)
        return PettingZooTurns(games, teams_of(games[0], seed, where, gives_state=gives_state, turn_steps=steps))
    if turn_steps is not None:
        raise UserError(f"environment.turn_steps: is {turn_steps}, but agents of {where} act at once; leave it out")
    parallels = [parallel_of(simulator, where) for simulator in simulators]
    return PettingZooEnvironment(parallels, teams_of(parallels[0], seed, where, gives_state=gives_state))


class PettingZooEnvironment(Environment):
    """Parallel environments behind the contract."""

    def __init__(self, simulators: Sequence[Parallel], teams: Sequence[Team]) -> None:
        self.spaces = Spaces(tuple(team.kind for team in teams))
        self.num_environments = len(simulators)
        self._simulators = simulators
        self._seats = Seats(teams, self.num_environments)
        self._now = self._seats.now
        self._states = [now.state for now in self._now.values() if now.state is not None]
        self._acting: list[list[str]] = [[] for _ in simulators]
        """Agents whose record of an environment is valid now; none while the environment waits for its reset."""
        self._ended: BoolArray = np.zeros(self.num_environments, np.bool_)
        self._episodes = EpisodeTracker(self.num_environments, list(self._seats))

    def reset(self, seed: int) -> Step:
        seeds = np.random.SeedSequence(seed).generate_state(self.num_environments).tolist()
        self._seats.clear()
        for env, env_seed in enumerate(seeds):
            self._restart(env, env_seed)
        self._ended[:] = False
        self._episodes.reset()
        return Step(self._now)

    def step(self, actions: Mapping[str, Array]) -> Step:
        decoded = self._seats.decode(actions)
        ended = self._ended.copy()
        valid = np.concatenate([now.valid for now in self._now.values()], axis=1)
        self._seats.clear()
        for env, simulator in enumerate(self._simulators):
            if ended[env]:
                self._restart(env, None)
            else:
                self._play(env, simulator, decoded)
            self._ended[env] = not self._acting[env]
        rewards = np.concatenate([now.rewards for now in self._now.values()], axis=1)
        return Step(self._now, self._episodes.record(rewards, valid, self._ended))

    def _restart(self, env: int, seed: int | None) -> None:
        simulator = self._simulators[env]
        with naming(f"environment {env}, reset"):
            observations, infos = simulator.reset(seed)
            agents = simulator.agents
            for agent in agents:
                now, place = self._seats.place(agent, env)
                now.first[place] = now.valid[place] = now.alive[place] = True
            self._acting[env] = agents
            self._observe(env, agents, observations, infos)

    def _play(self, env: int, simulator: Parallel, decoded: Mapping[str, Sequence[Any]]) -> None:
        acted = self._acting[env]
        chosen = {agent: self._seats.chosen(decoded, env, agent) for agent in simulator.agents}
        with naming(f"environment {env}"):
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
            now, place = self._seats.place(agent, env)
            now.rewards[place] = outcomes[agent].reward
            if agent not in acting:
                # An agent that is gone without a word has left for good: nothing to bootstrap from.
                is_cut = outcomes[agent].is_cut
                (now.truncated if is_cut else now.terminated)[place] = True
                # A cut one, as everyone at the end of the environment, is there for one more record: its value is asked
                # for.
                now.alive[place] = is_cut or not acting
        for agent in acting:
            now, place = self._seats.place(agent, env)
            now.first[place] = agent not in acted
            now.valid[place] = now.alive[place] = True

    def _observe(
        self, env: int, seen: Collection[str], observations: Mapping[str, Any], infos: Mapping[str, Any]
    ) -> None:
        if self._states:
            state = self._simulators[env].state(self._states[0].shape[1:])
            for array in self._states:
                array[env] = state
        for agent in self._seats:
            raw = observations.get(agent) if agent in seen else None
            self._seats.show(env, agent, raw, infos.get(agent))

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
