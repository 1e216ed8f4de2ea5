"""Atari 2600 games on ALE's C++ vector: 84x84 grey frames, each action held for 4 frames, the last 4 stacked.

The preprocessing is that of Mnih et al. 2015 (DQN, "Methods"): maximum over the last two frames, up to `noop_max`
idle frames after a reset, FIRE pressed where a game waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from envs._single_agent import AGENT, SingleAgentRecords, single_agent_spaces
from srlhpc.environment import Array, ArraySpec, Discrete, Environment, EpisodeTracker, Stack, Step
from srlhpc.errors import UserError, did_you_mean
from srlhpc.specs.named_modules import EnvironmentSettings

FRAMES_PER_SECOND = 60
FRAMES_PER_STEP = 4
STACK = 4
SIDE = 84
THREADS = 2
"""Half of the time before the first frame is each game's palette, which two threads compute in parallel at a reset."""


class Settings(EnvironmentSettings):
    """One game and how it is played."""

    requires: ClassVar[dict[str, str]] = {"ale_py": "atari"}

    game: str
    """Name of the ROM, for example `pong` or `ms_pacman`."""
    life_loss_terminates: bool = False
    """Let the learner see the end of an episode whenever a life is lost; the game goes on, and the reported return is
    that of the whole game."""
    reward_clip: PositiveFloat | None = 1.0
    """Rewards that the learner sees are clipped to plus or minus this; the reported returns never are. Null: off."""
    sticky_actions: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Probability, at every frame, that the action before is repeated (Machado et al. 2018 use 0.25)."""
    noop_max: NonNegativeInt = 30
    """Most idle frames after a reset."""
    full_action_space: bool = False
    """All 18 actions instead of those that do something in this game."""
    max_frames: PositiveInt = 108_000
    """Frames after which a game is cut (truncated)."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    """Makes the environment.

    Raises:
        UserError: there is no such game.
    """
    from ale_py import roms
    from ale_py.vector_env import AtariVectorEnv
    from gymnasium.vector import AutoresetMode

    games = roms.get_all_rom_ids()
    if settings.game not in games:
        raise UserError(f"environment.game: there is no '{settings.game}'{did_you_mean(settings.game, games)}")
    vector = AtariVectorEnv(
        settings.game,
        num_environments,
        num_threads=THREADS,
        max_num_frames_per_episode=settings.max_frames,
        repeat_action_probability=settings.sticky_actions,
        full_action_space=settings.full_action_space,
        autoreset_mode=AutoresetMode.NEXT_STEP,
        img_height=SIDE,
        img_width=SIDE,
        stack_num=STACK,
        frameskip=FRAMES_PER_STEP,
        noop_max=settings.noop_max,
        reward_clipping=False,
        use_fire_reset=True,
    )
    return Atari(vector, settings, num_environments, render)


class Atari(Environment):
    """E games of one kind."""

    def __init__(self, vector: Any, settings: Settings, num_environments: int, render: bool) -> None:
        names = [action.name for action in vector.ale.get_action_set()]
        self.spaces = single_agent_spaces(
            {"obs": ArraySpec((STACK, SIDE, SIDE), "uint8")},
            Discrete(len(names)),
            frames_per_step=FRAMES_PER_STEP,
            stacks={"obs": Stack(STACK, "zeros")},
        )
        self.num_environments = num_environments
        self._vector = vector
        self._draws = render
        self._clip = np.inf if settings.reward_clip is None else settings.reward_clip
        self._lives_count = settings.life_loss_terminates
        # What the record after a life loss plays: some games wait for FIRE before they go on.
        self._idle = names.index("FIRE") if self._lives_count and "FIRE" in names else 0
        self._records = SingleAgentRecords(self.spaces, num_environments)
        self._games = EpisodeTracker(num_environments, (AGENT,))
        self._lives = np.zeros(num_environments, np.int32)
        self._game_over = np.zeros(num_environments, np.bool_)
        # With `life_loss_terminates` an episode may begin in the middle of a game, with the frames before it.
        self._records.now.stacks_begin = self._begins = np.zeros((num_environments, 1), np.bool_)

    def reset(self, seed: int) -> Step:
        seeds = np.random.SeedSequence(seed).generate_state(self.num_environments) >> 1
        observations, info = self._vector.reset(seed=seeds.astype(np.int32))
        self._records.now.observations["obs"][:, 0] = observations
        self._lives[:] = info["lives"]
        self._games.reset()
        self._game_over[:] = False
        self._begins[:] = True
        return self._records.start()

    def step(self, actions: Mapping[str, Array]) -> Step:
        ended, now = self._records.ended, self._records.now
        chosen = np.where(ended, self._idle, actions[AGENT][:, 0])
        observations, scores, terminated, truncated, info = self._vector.step(chosen)
        game_over = terminated | truncated
        episodes = self._games.record(scores[:, None], ~ended, game_over)
        self._begins[:, 0], self._game_over[:] = self._game_over, game_over
        if self._lives_count:
            late = game_over & ended
            if late.any():
                observations, info = self._restart(late)
                self._begins[late], self._game_over[late] = True, False
            lives = info["lives"]
            # Some games show 0 lives for a moment before they end.
            terminated = terminated | ((lives > 0) & (lives < self._lives))
            self._lives[:] = lives
        now.observations["obs"][:, 0] = observations
        now.rewards[:, 0] = np.where(ended, 0, np.clip(scores, -self._clip, self._clip))
        now.terminated[:, 0] = terminated & ~ended
        now.truncated[:, 0] = truncated & ~ended
        return self._records.finish(episodes)

    def _restart(self, late: Array) -> tuple[Array, Mapping[str, Array]]:
        """Restarts games that ended in the record after a life loss, so that no second record is invalid."""
        observations, info = self._vector.reset(options={"reset_mask": late})
        return observations, info

    def render(self) -> Array | None:
        if not self._draws:
            return None
        newest = self._records.now.observations["obs"][0, 0, -1]
        return np.repeat(np.kron(newest, np.ones((4, 4), np.uint8))[:, :, None], 3, axis=2)

    @property
    def render_fps(self) -> float | None:
        return FRAMES_PER_SECOND / FRAMES_PER_STEP

    def close(self) -> None:
        self._vector.close()
