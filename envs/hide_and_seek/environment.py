"""Hide-and-seek behind the environment contract.

Letters: E environments, A agents (hiders, then seekers).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from envs._generators import generator_from_state, generator_state
from envs._mujoco_log import log_warnings
from envs.hide_and_seek.clock import Clock
from envs.hide_and_seek.drawing import draw
from envs.hide_and_seek.game import Game
from envs.hide_and_seek.layout import draw_layout, draw_team_sizes
from envs.hide_and_seek.model import SUBSTEPS, TIMESTEP
from envs.hide_and_seek.observations import Observer
from envs.hide_and_seek.rewards import outside, penalize, team_rewards
from envs.hide_and_seek.saved_layouts import load_layouts, save_layouts
from envs.hide_and_seek.settings import BINS, KIND, Settings
from envs.hide_and_seek.statistics import Statistics
from srlhpc.environment import (
    Array,
    BoolArray,
    Environment,
    Episode,
    EpisodeTracker,
    KindStep,
    SavedState,
    Step,
    empty_kind_step,
)

logger = logging.getLogger(__name__)

Floats = NDArray[np.float64]

IDLE = np.array((BINS // 2, BINS // 2, BINS // 2, 0, 0))
"""The action of those who cannot act."""


class HideAndSeek(Environment):
    """E worlds of hide-and-seek.

    An action is three bins of force (along the world's x and y, about the vertical) and two switches (pull, lock).
    """

    def __init__(self, settings: Settings, num_environments: int, seed: int, render: bool) -> None:
        log_warnings()
        self.spaces = settings.spaces()
        self.num_environments = num_environments
        self._settings, self._draws = settings, render
        self._game = Game(settings, num_environments)
        self._clock = Clock(num_environments, settings.horizon, settings.prep_fraction)
        self._statistics = Statistics(num_environments, self._game.bodies)
        kind = self.spaces.kind(KIND)
        self._now: KindStep = empty_kind_step(kind, num_environments)
        self._kinds = {KIND: self._now}
        self._observer = Observer(settings, self._game.bodies, self._game.locks, self._now.observations)
        self._tracker = EpisodeTracker(num_environments, kind.agents)
        self._ended: BoolArray = np.zeros(num_environments, np.bool_)
        self._seeds: NDArray[np.int64] = np.zeros(num_environments, np.int64)
        """Seed that the world of every environment was drawn from, or will be, in the deterministic mode."""
        self._teams: NDArray[np.int64] = np.zeros((num_environments, 2), np.int64)
        self._randoms: list[np.random.Generator] = []
        self.reset(seed)

    def _seed_all(self, seed: int) -> None:
        self._seeds[:] = np.random.SeedSequence(seed).generate_state(self.num_environments)
        self._randoms = [np.random.default_rng(env_seed) for env_seed in self._seeds.tolist()]

    def reset(self, seed: int) -> Step:
        self._seed_all(seed)
        for env, random in enumerate(self._randoms):
            self._teams[env] = draw_team_sizes(self._settings, random)
            self._restart(env)
        self._tracker.reset()
        self._ended[:] = False
        self._now.rewards[:] = 0.0
        self._now.truncated[:] = False
        self._game.perceive()
        self._show()
        self._now.first[:] = self._now.alive
        return Step(self._kinds)

    def _restart(self, env: int) -> None:
        """Draws a new world for an environment."""
        settings = self._settings
        if settings.deterministic:
            self._randoms[env] = np.random.default_rng(int(self._seeds[env]))
            self._seeds[env] += 1
        if settings.team_sizes == "per_episode":
            self._teams[env] = draw_team_sizes(settings, self._randoms[env])
        hiders, seekers = self._teams[env].tolist()
        self._game.start(env, draw_layout(settings, hiders, seekers, self._randoms[env]))
        self._statistics.enter(env)
        self._enter(env)
        self._clock.time[env] = 0

    def _enter(self, env: int) -> None:
        """Tells agents apart: who is in the game of an environment."""
        self._observer.enter(env, *self._teams[env].tolist())
        self._now.alive[env] = self._game.bodies.exists[env, : self._game.slots.agents]

    def step(self, actions: Mapping[str, Array]) -> Step:
        game, now = self._game, self._now
        played = ~self._ended
        preparing = self._clock.is_preparing
        frozen = ~now.valid | (preparing[:, None] & ~game.slots.is_hider)
        game.act(np.where(frozen[:, :, None], IDLE, actions[KIND]), self._randoms)
        saw_food = game.sees[:, : game.slots.hiders, game.slots.bodies :]
        was_caught = np.asarray(self._caught().any(axis=(1, 2)))
        failed = self._move(played)
        game.perceive()
        rewards = self._rewards(preparing)
        if self._settings.food:
            self._eat(rewards, saw_food, ~preparing & played & ~failed, was_caught)
        now.rewards[:] = np.where((played & ~failed)[:, None] & now.alive, rewards, 0.0)
        self._statistics.end_preparation(played & self._clock.is_prep_reported, game.locks.locked)
        over = played & (self._clock.is_over | failed)
        self._show()
        now.first[:] = now.alive & ~played[:, None]
        now.truncated[:] = now.alive & over[:, None]
        now.valid[:] = now.alive & ~over[:, None]
        self._ended = over
        records = now.alive & played[:, None]
        return Step(self._kinds, self._finished(self._tracker.record(now.rewards, records, over)))

    def _move(self, played: BoolArray) -> BoolArray:
        """Simulates a step of the environments that play and restarts the others; says which simulations failed,
        `[E]`."""
        game = self._game
        game.bodies.begin_step()
        self._clock.time += played
        for env, plays in enumerate(played.tolist()):
            if plays:
                game.worlds[env].step()
            else:
                self._restart(env)
        game.bodies.read(game.worlds)
        failed = ~game.bodies.is_sound()
        for env in np.flatnonzero(failed).tolist():
            game.bodies.take_back(env, game.worlds[env])
            logger.warning("a simulation diverged; its episode is cut off at step %d", self._clock.time[env])
        return failed

    def _caught(self) -> BoolArray:
        """`[E, seekers, hiders]`: who sees whom."""
        slots = self._game.slots
        return self._game.sees[:, slots.hiders : slots.agents, : slots.hiders]

    def _rewards(self, preparing: BoolArray) -> Floats:
        """`[E, A]` of the last step, but for food."""
        slots, bodies, settings = self._game.slots, self._game.bodies, self._settings
        exists = bodies.exists
        rewards = team_rewards(
            self._caught(), exists[:, : slots.hiders], exists[:, slots.hiders : slots.agents], settings.reward
        )
        if settings.restrict:
            out = outside(bodies.centres, settings.restrict) & exists
            things_out = out[:, slots.agents :] if settings.scenario.penalize_objects_out else None
            penalize(rewards, out[:, : slots.agents], things_out)
        rewards[preparing] = 0.0
        return rewards

    def _eat(self, rewards: Floats, saw: BoolArray, may_eat: BoolArray, was_caught: BoolArray) -> None:
        """Adds the rewards of food."""
        slots, food = self._game.slots, self._settings.food
        assert food is not None
        if not food.eat_when_seen:
            may_eat = may_eat & ~was_caught
        eaten = self._game.meals.step(self._game.bodies.centres[:, : slots.hiders], saw, may_eat)
        if food.shared:
            eaten = np.broadcast_to(eaten.sum(axis=1, keepdims=True) / self._teams[:, :1], eaten.shape)
        rewards[:, : slots.hiders] += eaten

    def _show(self) -> None:
        """Writes the observations of now."""
        game, observations = self._game, self._now.observations
        if self._settings.food:
            observations["food_obs"][..., :3] = game.meals.sites[:, None]
            observations["food_obs"][..., 3] = game.meals.health[:, None]
            observations["mask_af_obs"][:] = game.sees[:, :, game.slots.bodies :]
        self._observer.write(self._clock.prep_observed, game.sees, game.lidar)
        self._now.valid[:] = self._now.alive

    def _finished(self, episodes: Sequence[Episode]) -> Sequence[Episode]:
        """Adds statistics to episodes."""
        return [replace(episode, metrics=self._metrics(episode)) for episode in episodes]

    def _metrics(self, episode: Episode) -> dict[str, float]:
        env = episode.environment
        names = self._settings.agents
        last_seeker = names[self._settings.hiders[1] + int(self._teams[env, 1]) - 1]
        return {
            **self._statistics.of(env, self._game.locks.locked[env]),
            **self._game.meals.of(env),
            "hider_return": episode.returns[names[0]],
            "seeker_return": episode.returns[last_seeker],
        }

    def save_state(self) -> SavedState:
        now = self._now
        return {
            **self._game.save_state(),
            **save_layouts(self._game.layouts, self._settings),
            **self._statistics.save_state(),
            **self._tracker.save_state(),
            "time": self._clock.time.copy(),
            "seeds": self._seeds.copy(),
            "randoms": np.array([generator_state(random) for random in self._randoms]),
            "ended": self._ended.copy(),
            "first": now.first.copy(),
            "rewards": now.rewards.copy(),
            "truncated": now.truncated.copy(),
        }

    def load_state(self, state: SavedState) -> Step:
        now = self._now
        self._teams[:] = state["teams"]
        self._game.load_state(state, load_layouts(state, self._settings))
        for env in range(self.num_environments):
            self._enter(env)
        self._statistics.load_state(state)
        self._tracker.load_state(state)
        self._clock.time[:] = state["time"]
        self._seeds[:] = state["seeds"]
        self._randoms = [generator_from_state(words) for words in state["randoms"]]
        self._ended = state["ended"].copy()
        self._show()
        now.first[:], now.rewards[:], now.truncated[:] = state["first"], state["rewards"], state["truncated"]
        now.valid[:] = now.alive & ~self._ended[:, None]
        return Step(self._kinds)

    def render(self) -> Array | None:
        if not self._draws:
            return None
        return draw(self._game, 0, self._settings.floor, preparing=bool(self._clock.is_preparing[0]))

    @property
    def render_fps(self) -> float | None:
        return 1.0 / (SUBSTEPS * TIMESTEP)

    def close(self) -> None:
        self._game.close()
