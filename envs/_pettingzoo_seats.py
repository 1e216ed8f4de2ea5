"""Where each agent of a PettingZoo environment is among the arrays of its kind, and how what it sees gets there."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from envs._action_masks import MASK, unexpected_mask, write_mask
from envs._pettingzoo_teams import Team
from envs._returned_values import SimulatorError, checked_info
from srlhpc.environment import Array, KindStep, empty_kind_step

log = logging.getLogger("envs.pettingzoo")


@dataclass(frozen=True)
class Seat:
    """Where one agent's values are."""

    team: Team
    now: KindStep
    index: int

    def write_seen(self, env: int, agent: str, raw: Any) -> None:
        """What the agent sees in an environment; None: nothing."""
        place = (env, self.index)
        if raw is not None:
            self.team.observations.write(raw, self.now.observations, place)
        elif self.now.truncated[place]:
            _say_that_it_is_missing(agent)  # What it saw before is still there, and stays.
        else:
            for array in self.now.observations.values():
                array[place] = 0

    def write_mask(self, env: int, raw: Any, info: Mapping[str, Any] | None) -> None:
        """The mask that comes with what it sees, or with its info."""
        place = (env, self.index)
        source = raw if self.team.mask_in_observation else checked_info({} if info is None else info)
        mask = None if source is None else source.get(MASK)
        if self.now.action_masks is not None:
            acts = bool(self.now.valid[place])
            write_mask(mask, self.team.codec.space, self.now.action_masks[place], acts=acts)
        elif mask is not None:
            raise unexpected_mask()


class Seats:
    """All agents of E environments, by name."""

    def __init__(self, teams: Sequence[Team], num_environments: int) -> None:
        self._teams, self._num_environments = teams, num_environments
        self.now = {team.kind.name: empty_kind_step(team.kind, num_environments) for team in teams}
        """What a step shows, by kind."""
        self._seats = {
            agent: Seat(team, self.now[team.kind.name], index)
            for team in teams
            for index, agent in enumerate(team.kind.agents)
        }

    def __getitem__(self, agent: str) -> Seat:
        return self._seats[agent]

    def __iter__(self) -> Iterator[str]:
        return iter(self._seats)

    def place(self, agent: str, env: int) -> tuple[KindStep, tuple[int, int]]:
        """The agent's arrays, and its place in them."""
        seat = self._seats[agent]
        return seat.now, (env, seat.index)

    def clear(self) -> None:
        """Nobody is there and nothing has come."""
        for now in self.now.values():
            for flags in (now.first, now.valid, now.alive, now.terminated, now.truncated):
                flags[:] = False
            if now.waits is not None:
                now.waits[:] = False
            now.rewards[:] = 0.0

    def decode(self, actions: Mapping[str, Array]) -> Mapping[str, Sequence[Any]]:
        """Kind to actions as simulators take them, of all agents of all environments, one after the other."""
        return {team.kind.name: self._decode(team, actions[team.kind.name]) for team in self._teams}

    def _decode(self, team: Team, actions: Array) -> Sequence[Any]:
        valid = self.now[team.kind.name].valid
        if not valid.all():
            actions = actions.copy()
            actions[~valid] = team.codec.idle
        rows = self._num_environments * len(team.kind.agents)
        return team.codec.one_by_one(team.codec.decode(actions.reshape(rows, *actions.shape[2:])))

    def chosen(self, decoded: Mapping[str, Sequence[Any]], env: int, agent: str) -> Any:
        """One agent's action."""
        seat = self._seats[agent]
        return decoded[seat.team.kind.name][env * len(seat.team.kind.agents) + seat.index]

    def show(self, env: int, agent: str, raw: Any, info: Mapping[str, Any] | None) -> None:
        """Writes what an agent sees now, and its mask.

        Raises:
            SimulatorError: it is something else than was declared.
        """
        seat = self._seats[agent]
        try:
            seat.write_seen(env, agent, raw)
            seat.write_mask(env, raw, info)
        except SimulatorError as error:
            raise SimulatorError(f"agent '{agent}': {error}") from None


@contextmanager
def naming(where: str) -> Iterator[None]:
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
