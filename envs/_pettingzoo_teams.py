"""The kinds of a PettingZoo environment: agents of equal spaces, and how to talk to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from envs._action_masks import has_masks, split_mask
from envs._gymnasium_actions import ActionCodec, action_codec
from envs._gymnasium_spaces import ObservationKeys, observation_keys
from envs._parallel import Values
from envs._returned_values import SimulatorError
from srlhpc.environment import ArraySpec, FloatArray, Kind
from srlhpc.errors import UserError


class Simulated(Protocol):
    """What kinds are found out from: envs/_parallel.py, envs/_aec.py."""

    def reset(self, seed: int | None = None) -> tuple[Values, ...]: ...
    def state(self, shape: tuple[int, ...] | None = None) -> FloatArray: ...
    def spaces(self, where: str) -> list[tuple[str, tuple[Any, Any]]]: ...


@dataclass(frozen=True)
class Team:
    """A kind and how to talk to its agents."""

    kind: Kind
    observations: ObservationKeys
    codec: ActionCodec
    mask_in_observation: bool


@dataclass
class Group:
    """Agents of equal spaces."""

    seen: Any
    actions: Any
    agents: list[str]


def _groups(simulated: Simulated, where: str) -> list[Group]:
    groups: list[Group] = []
    for name, (seen, actions) in simulated.spaces(where):
        group = next((group for group in groups if (group.seen, group.actions) == (seen, actions)), None)
        if group is None:
            groups.append(Group(seen, actions, [name]))
        else:
            group.agents.append(name)
    return groups


def teams_of(
    simulated: Simulated, seed: int, where: str, *, gives_state: bool = False, turn_steps: int = 1
) -> list[Team]:
    """Kinds of agents, in the order of their first ones, with `gives_state` with the environment's own state.

    Raises:
        UserError: spaces are not understood, or the first reset does not give what they say.
    """
    try:
        observations, infos = simulated.reset(seed)
        state = ArraySpec(simulated.state().shape, "float32") if gives_state else None
    except SimulatorError as error:
        raise UserError(f"{where}, reset: {error}") from None
    teams: list[Team] = []
    for group in _groups(simulated, where):
        name = _kind_name(group.agents, [team.kind.name for team in teams])
        there = f"{where}, kind '{name}' ({', '.join(group.agents[:3])}{', ...' if len(group.agents) > 3 else ''})"
        codec = action_codec(group.actions, there)
        shown, mask_in_observation = split_mask(group.seen, codec.space, there)
        keys = observation_keys(shown, there)
        for agent in group.agents:
            if observations.get(agent) is not None:
                keys.check(observations[agent], f"{where}, agent '{agent}'")
        masked = mask_in_observation or has_masks(map(infos.get, group.agents), codec.space, there)
        agents = tuple(group.agents)
        kind = Kind(name, agents, keys.specs, codec.space, masked, state=state, turn_steps=turn_steps)
        teams.append(Team(kind, keys, codec, mask_in_observation))
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
