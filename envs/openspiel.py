"""Games of OpenSpiel (Lanctot et al. 2019, arXiv:1908.09453): boards and cards, with chance and hidden information.

Players are agents of one kind that take turns. OpenSpiel plays the games in C++; here is a loop over environments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge

from envs._generators import generator_from_state, generator_state
from envs._openspiel_games import Shown, Table, load_game, shown_tensor
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

_KIND = "player"
_OBSERVATION, _SEAT = "obs", "seat"


class Settings(EnvironmentSettings):
    """One game and what its players see."""

    requires: ClassVar[dict[str, str]] = {"pyspiel": "openspiel"}

    game: str
    """OpenSpiel's name, for example `tic_tac_toe`, `connect_four`, `leduc_poker` or `hanabi`. In games where several
    players choose at once, such as `matrix_rps`, they do so one after the other, and see nothing of it."""
    parameters: dict[str, Any] = {}
    """Parameters of that game, such as `players`."""
    shown: Shown | None = None
    """What a player sees: the information_state, which remembers all that it has seen, or the observation of now, for
    networks with memory and games without secrets. null: the information state where the game gives one."""
    turn_steps: Annotated[int, Ge(2)] | None = None
    """Most steps, as a rule, from one turn of a player to its next, for the windows of replay. null: twice the number
    of players, less one, since another may be first in a new round."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    """Makes the environment.

    Raises:
        UserError: there is no such game or parameter, or its players see no tensor.
    """
    game = load_game(settings.game, settings.parameters)
    shown, shape = shown_tensor(game, settings.game, settings.shown)
    players = game.num_players()
    observations = {_OBSERVATION: ArraySpec(shape, "float32")}
    if players > 1:
        observations[_SEAT] = ArraySpec((players,), "float32")
    kind = Kind(
        _KIND,
        tuple(f"player_{place}" for place in range(players)),
        observations,
        Discrete(game.num_distinct_actions()),
        has_action_masks=True,
        turn_steps=(settings.turn_steps or 2 * players - 1) if players > 1 else 1,
    )
    return OpenSpiel([Table(game, shown) for _ in range(num_environments)], kind, seed)


class OpenSpiel(Environment):
    """E games of one kind. Observations: the tensor, and where there are several players the seat as one-hot."""

    def __init__(self, tables: Sequence[Table], kind: Kind, seed: int) -> None:
        self.spaces = Spaces((kind,))
        self.num_environments = len(tables)
        self._tables = tables
        self._now = empty_kind_step(kind, len(tables))
        self._now.alive[:] = True
        rows = self._now.valid.shape
        if _SEAT in kind.observations:
            self._now.observations[_SEAT][:] = np.eye(rows[1], dtype=np.float32)
        self._acted = np.zeros(rows, np.bool_)
        """Who has had a turn in this game."""
        self._returns = np.zeros(rows, np.float64)
        self._episodes = EpisodeTracker(len(tables), kind.agents)
        self._seed(seed)

    def _seed(self, seed: int) -> None:
        seeds = np.random.SeedSequence(seed).generate_state(self.num_environments)
        for table, own_seed in zip(self._tables, seeds.tolist(), strict=True):
            table.seed(own_seed)

    def reset(self, seed: int) -> Step:
        self._seed(seed)
        self._now.rewards[:], self._now.terminated[:] = 0.0, False
        for env in range(self.num_environments):
            self._begin(env)
        self._episodes.reset()
        return Step({_KIND: self._now})

    def _begin(self, env: int) -> None:
        self._tables[env].begin()
        self._acted[env], self._returns[env] = False, 0.0
        self._show(env)

    def step(self, actions: Mapping[str, Array]) -> Step:
        now, chosen = self._now, actions[_KIND]
        now.rewards[:], now.terminated[:] = 0.0, False
        playing = np.ones(self.num_environments, np.bool_)
        for env, table in enumerate(self._tables):
            mover = table.mover
            if mover is None:
                playing[env] = False
                self._begin(env)
                continue
            table.play(int(chosen[env, mover]))
            # Their differences: what a state says of its last move stands behind chance, too.
            now.rewards[env] = table.returns - self._returns[env]
            self._returns[env] = table.returns
            now.terminated[env] = table.mover is None
            self._show(env)
        ended = now.terminated[:, 0]
        episodes = self._episodes.record(now.rewards, playing, ended)
        return Step({_KIND: now}, [self._told(episode) for episode in episodes])

    def _told(self, episode: Episode) -> Episode:
        """One with the game's own statistics and, where there are several seats, the return of each: of all together
        nothing may be seen."""
        several = len(episode.returns) > 1
        returns = {f"return_{agent}": total for agent, total in episode.returns.items()} if several else {}
        return replace(episode, metrics={**returns, **self._tables[episode.environment].statistics})

    def _show(self, env: int) -> None:
        now, table = self._now, self._tables[env]
        mover = table.mover
        valid = np.arange(now.valid.shape[1]) == mover
        now.valid[env], now.first[env] = valid, valid & ~self._acted[env]
        self._acted[env] |= valid
        if now.waits is not None:
            now.waits[env] = ~valid & (mover is not None)
        seen = now.observations[_OBSERVATION][env]
        for player, row in enumerate(seen):
            row[...] = table.tensor(player).reshape(row.shape)
        assert now.action_masks is not None
        now.action_masks[env] = True
        if mover is not None:
            now.action_masks[env, mover] = False
            now.action_masks[env, mover, table.legal_actions()] = True

    def save_state(self) -> SavedState:
        now = self._now
        games = json.dumps([table.serialize() for table in self._tables]).encode()
        return {
            "games": np.frombuffer(games, np.uint8).copy(),
            "generators": np.stack([generator_state(table.generator) for table in self._tables]),
            "acted": self._acted.copy(),
            "first": now.first.copy(),
            "rewards": now.rewards.copy(),
            "terminated": now.terminated.copy(),
            "returns": self._returns.copy(),
            **self._episodes.save_state(),
        }

    def load_state(self, state: SavedState) -> Step:
        games = json.loads(state["games"].tobytes())
        for env, (table, text, words) in enumerate(zip(self._tables, games, state["generators"], strict=True)):
            table.deserialize(text)
            table.generator = generator_from_state(words)
            self._show(env)
        self._acted, self._returns = state["acted"].copy(), state["returns"].copy()
        for name in ("first", "rewards", "terminated"):
            getattr(self._now, name)[:] = state[name]
        self._episodes.load_state(state)
        return Step({_KIND: self._now})
