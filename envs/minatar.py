"""MinAtar: five Atari games on 10 x 10 cells (Young and Tian 2019, arXiv:1903.03176), by the authors' package.

A step is a frame. Nothing is clipped, and no frames are stacked: where things move is shown.
"""

from __future__ import annotations

import colorsys
import json
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, PositiveInt

from envs._minatar_games import ACTIONS, GAMES, SIDE, Game, game_module
from envs._single_agent import AGENT, SingleAgentRecords, single_agent_spaces
from srlhpc.environment import Array, ArraySpec, Discrete, Environment, SavedState, Spaces, Step
from srlhpc.specs.named_modules import EnvironmentSettings

FRAMES_PER_SECOND = 20
"""What the window of the package shows."""
PIXELS = 32
"""Height and width of a cell in a picture."""


class Settings(EnvironmentSettings):
    """One game and how it is played."""

    requires: ClassVar[dict[str, str]] = {"minatar": "minatar"}

    game: Literal["asterix", "breakout", "freeway", "seaquest", "space_invaders"]
    """Which game."""
    sticky_actions: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Probability, at every frame, that the action before is repeated."""
    difficulty_ramping: bool = True
    """Let `asterix`, `seaquest` and `space_invaders` become faster while an episode lasts."""
    full_action_space: bool = True
    """All six actions (idle, left, up, right, down, fire) instead of those that do something in this game."""
    max_frames: PositiveInt | None = None
    """Frames after which a game is cut (truncated). Null: never but in `freeway`, which the package ends after 2,501;
    that end counts as a cut, too, because nothing in the game shows the time."""

    def spaces(self) -> Spaces:
        facts = GAMES[self.game]
        actions = ACTIONS if self.full_action_space else len(facts.minimal_actions)
        return single_agent_spaces({"obs": ArraySpec((facts.channels, SIDE, SIDE), "uint8")}, Discrete(actions))


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    return MinAtar(settings, num_environments, seed, render)


class MinAtar(Environment):
    """E games of one kind.

    Observation: `[C, 10, 10]`, one channel for each kind of thing, 255 where there is one, so networks for images see
    0 and 1.
    """

    def __init__(self, settings: Settings, num_environments: int, seed: int, render: bool) -> None:
        self.spaces = settings.spaces()
        self.num_environments = num_environments
        module, facts = game_module(settings.game), GAMES[settings.game]
        self._games = [
            Game(module, settings.sticky_actions, difficulty_ramping=settings.difficulty_ramping)
            for _ in range(num_environments)
        ]
        self._actions = np.arange(ACTIONS) if settings.full_action_space else np.array(facts.minimal_actions)
        self._ends_by_clock = facts.ends_by_clock
        self._most_frames = settings.max_frames or np.iinfo(np.int64).max
        self._draws = render
        self._records = SingleAgentRecords(self.spaces, num_environments)
        self._cells = np.zeros((num_environments, SIDE, SIDE, facts.channels), np.bool_)
        self._frames = np.zeros(num_environments, np.int64)
        self._seed(seed)

    def _seed(self, seed: int) -> None:
        seeds = np.random.SeedSequence(seed).generate_state(self.num_environments)
        for game, own_seed in zip(self._games, seeds.tolist(), strict=True):
            game.seed(own_seed)

    def reset(self, seed: int) -> Step:
        self._seed(seed)
        self._frames[:] = 0
        self._show()
        return self._records.start()

    def step(self, actions: Mapping[str, Array]) -> Step:
        ended, now = self._records.ended, self._records.now
        chosen = self._actions[np.where(ended, 0, actions[AGENT][:, 0])].tolist()
        rewards, over = [0.0] * self.num_environments, [False] * self.num_environments
        for index, (game, waits) in enumerate(zip(self._games, ended.tolist(), strict=True)):
            if waits:
                game.restart()
            else:
                rewards[index], over[index] = game.act(chosen[index])
        self._frames += 1
        self._frames[ended] = 0
        now.rewards[:, 0] = rewards
        now.terminated[:, 0] = False if self._ends_by_clock else over
        # Where both are set, the records count the termination.
        now.truncated[:, 0] = (self._frames >= self._most_frames) | (over if self._ends_by_clock else False)
        self._show()
        return self._records.finish()

    def _show(self) -> None:
        for row, game in zip(self._cells, self._games, strict=True):
            row[:] = game.cells()
        shown = self._records.now.observations["obs"][:, 0]
        np.multiply(self._cells.transpose(0, 3, 1, 2), np.uint8(255), out=shown)

    def save_state(self) -> SavedState:
        games = json.dumps([game.state() for game in self._games]).encode()
        return {
            **self._records.save_state(),
            "frames": self._frames.copy(),
            "games": np.frombuffer(games, np.uint8).copy(),
            "generators": np.stack([game.generator_words() for game in self._games]),
        }

    def load_state(self, state: SavedState) -> Step:
        self._frames[:] = state["frames"]
        saved = json.loads(state["games"].tobytes())
        for game, own_state, words in zip(self._games, saved, state["generators"], strict=True):
            game.load(own_state, words)
        return self._records.load_state(state)

    def render(self) -> Array | None:
        if not self._draws:
            return None
        cells = self._games[0].cells()
        channels = cells.shape[-1]
        colours = [colorsys.hsv_to_rgb(channel / channels, 0.6, 1.0) for channel in range(channels)]
        palette = np.array([(0.0, 0.0, 0.0), *colours]) * 255
        # Where there are several things, the last channel is seen.
        seen = (cells * np.arange(1, channels + 1)).max(axis=-1)
        picture: Array = palette[seen].round().astype(np.uint8)
        return picture.repeat(PIXELS, axis=0).repeat(PIXELS, axis=1)

    @property
    def render_fps(self) -> float | None:
        return FRAMES_PER_SECOND
