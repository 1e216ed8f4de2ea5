"""Google Football: matches and drills, some players of which are agents (Kurach et al. 2020, arXiv:1907.11180), by the
package `gfootball`, which docs/football.md says how to build.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import NonNegativeInt

from srlhpc.environment import (
    Array,
    ArraySpec,
    Discrete,
    Environment,
    Episode,
    EpisodeTracker,
    Kind,
    Spaces,
    Step,
    empty_kind_step,
)
from srlhpc.errors import UserError
from srlhpc.import_path import missing_packages
from srlhpc.specs.named_modules import EnvironmentSettings

_KIND = "player"
_CHECKPOINTS = 10
_CHECKPOINT_REWARD = 0.1
FRAMES_PER_SECOND = 10


class Settings(EnvironmentSettings):
    """A level and who is controlled in it; the engine plays all others."""

    level: str
    """Name of a scenario of the package: `academy_empty_goal_close`, `academy_3_vs_1_with_keeper`,
    `11_vs_11_easy_stochastic`, `5_vs_5`."""
    left_players: NonNegativeInt = 1
    """Players of the left team that are agents: `left_0`, `left_1`. One alone is whoever is nearest to the ball."""
    right_players: NonNegativeInt = 0
    """The same of the right team, whose agents see the field turned round, so that one policy can play either side."""
    representation: Literal["simple115", "minimap"] = "simple115"
    """115 numbers, the package's `simple115v2`; or a map of 96 x 72 with four layers, its `extracted`."""
    checkpoints: bool = False
    """Adds 0.1 for each of ten rings around the other goal into which a player carries the ball first, 1 in all (Kurach
    et al. 2020, section 3.2); a goal brings those that were not reached. Returns are goals alone."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    """Makes the environment.

    Raises:
        UserError: there is no such level, or not so many players can be controlled in it.
    """
    from envs._football_match import Match, check_level, load_football

    if missing_packages({"gfootball": ""}):
        script = Path(__file__).with_name("_football_build.sh")
        raise UserError(
            f"environment 'football' needs 'gfootball', which is not installed here and has to be built: sh {script} "
            f"{sys.executable} (docs/football.md)"
        )
    if not settings.left_players + settings.right_players:
        raise UserError("environment.left_players: is 0, as right_players is, so nobody would learn; control somebody")
    load_football()
    check_level(settings.level)
    matches = [Match(settings.level, settings.left_players, settings.right_players) for _ in range(num_environments)]
    return Football(matches, settings, draws=render)


class Football(Environment):
    """E matches. Agents are in the game until its end, and see what is left of the time beside what the package shows.

    The end of a drill's time cuts it (truncated), as its other ends do not; that of a whole match belongs to the game.
    """

    def __init__(self, matches: list[Any], settings: Settings, *, draws: bool) -> None:
        from envs._football_match import ACTIONS
        from envs._football_views import MAP, NUMBERS, write_map, write_numbers

        numbers = settings.representation == "simple115"
        shown = ArraySpec((NUMBERS,), "float32") if numbers else ArraySpec(MAP, "uint8")
        agents = [f"left_{place}" for place in range(settings.left_players)]
        agents += [f"right_{place}" for place in range(settings.right_players)]
        observations = {"obs": shown, "time_left": ArraySpec((1,), "float32")}
        kind = Kind(_KIND, tuple(agents), observations, Discrete(ACTIONS))
        self.spaces = Spaces((kind,))
        self.num_environments = len(matches)
        self._matches, self._settings, self._draws = matches, settings, draws
        self._write = write_numbers if numbers else write_map
        self._left = settings.left_players
        self._signs = np.repeat([1.0, -1.0], [settings.left_players, settings.right_players])
        self._cuts = settings.level.startswith("academy")
        self._now = empty_kind_step(kind, self.num_environments)
        self._now.alive[:] = True
        self._ended = np.zeros(self.num_environments, np.bool_)
        self._reached = np.zeros((self.num_environments, len(agents)), np.int64)
        """Rings that each player has carried the ball into."""
        self._goals = np.zeros((self.num_environments, 2), np.int64)
        self._generator = np.random.default_rng(0)
        self._episodes = EpisodeTracker(self.num_environments, agents)

    def reset(self, seed: int) -> Step:
        self._generator = np.random.default_rng(seed)
        self._episodes.reset()
        self._now.rewards[:] = 0.0
        self._now.terminated[:] = self._now.truncated[:] = False
        for env in range(self.num_environments):
            self._begin(env)
        return Step({_KIND: self._now})

    def _begin(self, env: int) -> None:
        self._matches[env].reset(int(self._generator.integers(2**31 - 1)))
        self._ended[env] = False
        self._reached[env], self._goals[env] = 0, 0
        self._now.first[env] = self._now.valid[env] = True
        self._show(env)

    def step(self, actions: Mapping[str, Array]) -> Step:
        now, was_over = self._now, self._ended.copy()
        now.rewards[:] = 0.0
        now.first[:] = now.terminated[:] = now.truncated[:] = False
        goals = np.zeros_like(now.rewards, np.float64)
        for env, match in enumerate(self._matches):
            if was_over[env]:
                self._begin(env)
                continue
            is_over = match.step(actions[_KIND][env].tolist())
            goals[env] = self._scored(env)
            now.rewards[env] = goals[env] + self._rings(env, goals[env])
            is_cut = is_over and self._cuts and match.now["steps_left"] <= 0
            now.terminated[env], now.truncated[env], now.valid[env] = is_over and not is_cut, is_cut, not is_over
            self._ended[env] = is_over
            self._show(env)
        played = np.repeat(~was_over[:, None], goals.shape[1], axis=1)
        episodes = self._episodes.record(goals, played, self._ended & ~was_over)
        return Step({_KIND: now}, [self._told(episode) for episode in episodes])

    def _scored(self, env: int) -> Array:
        """What the last step's goals bring each player."""
        score = np.array(self._matches[env].now["score"])
        (left, right), self._goals[env] = score - self._goals[env], score
        return np.asarray(self._signs * (left - right))

    def _rings(self, env: int, goals: Array) -> Array:
        """What rings bring each player that were reached with the last step."""
        if not self._settings.checkpoints:
            return np.zeros(len(goals))
        before = self._reached[env].copy()
        for place, goal in enumerate(goals):
            if goal >= 1:
                self._reached[env, place] = _CHECKPOINTS
            elif (distance := self._distance(env, place)) is not None:
                while self._reached[env, place] < _CHECKPOINTS and distance <= _ring(self._reached[env, place]):
                    self._reached[env, place] += 1
        return np.asarray(_CHECKPOINT_REWARD * (self._reached[env] - before))

    def _distance(self, env: int, place: int) -> float | None:
        """From the ball to the other goal, where this player has it."""
        seen, is_left = self._matches[env].now, place < self._left
        controlled = seen["left_agent_controlled_player" if is_left else "right_agent_controlled_player"]
        player = controlled[place if is_left else place - self._left]
        if seen["ball_owned_team"] != (0 if is_left else 1) or seen["ball_owned_player"] != player:
            return None
        x, y, _ = seen["ball"]
        return float(np.hypot(x - (1.0 if is_left else -1.0), y))

    def _told(self, episode: Episode) -> Episode:
        left, right = self._goals[episode.environment].tolist()
        metrics = {"goals_left": float(left), "goals_right": float(right), "left_won": float(left > right)}
        return replace(episode, metrics=metrics)

    def _show(self, env: int) -> None:
        match, observations = self._matches[env], self._now.observations
        shown = observations["obs"][env]
        if self._left:
            self._write(match.now, shown[: self._left])
        if self._left < len(shown):
            self._write(match.turned, shown[self._left :])
        observations["time_left"][env] = match.now["steps_left"] / match.duration

    def render(self) -> Array | None:
        from envs._football_drawing import draw

        return draw(self._matches[0].now) if self._draws else None

    @property
    def render_fps(self) -> float | None:
        return FRAMES_PER_SECOND

    def close(self) -> None:
        matches, self._matches = self._matches, []
        for match in matches:
            match.close()


def _ring(reached: int) -> float:
    """Distance to the goal at which the next ring begins: from 0.99 to 0.19."""
    return 0.99 - 0.8 / (_CHECKPOINTS - 1) * reached
