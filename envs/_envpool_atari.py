"""Atari games of EnvPool: stacks of frames, and scores of whole games.

With `episodic_life` a lost life ends an episode; the next call plays EnvPool's idle frames and goes on with the same
game and its stack. With `reward_clip` the learner sees signs of rewards. Episodes are games and their true scores all
the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from envs._envpool_pools import Pool
from envs._gymnasium_pictures import picture
from envs._single_agent import AGENT, SingleAgentRecords, single_agent_spaces
from srlhpc.environment import (
    MOST_FRAMES,
    Array,
    ArraySpec,
    BoolArray,
    Discrete,
    Environment,
    EpisodeTracker,
    Stack,
    Step,
)

FRAMES_PER_SECOND = 60


class AtariPool(Environment):
    """E games of one kind."""

    def __init__(self, pool: Pool, num_environments: int) -> None:
        shape, frames = pool.single_observation_space.shape, pool.config["stack_num"]
        # A coloured frame is three of the first axis.
        is_stack = pool.config["gray_scale"] and 2 <= frames <= MOST_FRAMES
        self.spaces = single_agent_spaces(
            {"obs": ArraySpec(shape, "uint8")},
            Discrete(int(pool.single_action_space.n)),
            frames_per_step=pool.config["frame_skip"],
            stacks={"obs": Stack(frames, "newest")} if is_stack else {},
        )
        self.num_environments = num_environments
        self._pool = pool
        self._records = SingleAgentRecords(self.spaces, num_environments)
        self._games = EpisodeTracker(num_environments, (AGENT,))
        self._lives = np.zeros(num_environments, np.int32)
        self._is_over = np.zeros(num_environments, np.bool_)
        """Whether the last record ended a game, not only a life."""
        self._records.now.stacks_begin = self._begins = np.zeros((num_environments, 1), np.bool_)

    def reset(self, seed: int) -> Step:
        observations, info = self._pool.reset(seed=seed)
        self._records.now.observations["obs"][:, 0] = observations
        self._lives[:], self._is_over[:], self._begins[:] = info["lives"], False, True
        self._games.reset()
        return self._records.start()

    def step(self, actions: Mapping[str, Array]) -> Step:
        ended, now = self._records.ended, self._records.now
        chosen = np.where(ended, 0, actions[AGENT][:, 0])
        observations, rewards, terminated, truncated, info = self._pool.step(chosen)
        lives = info["lives"]
        # A game may also end in the idle frames after a lost life; the next one has begun then.
        has_ended_late = ended & ~self._is_over & (lives > self._lives)
        is_game_over = info["terminated"].astype(np.bool_)
        is_over = is_game_over | truncated
        episodes = self._games.record(info["reward"][:, None], ~ended, is_over | has_ended_late)
        self._lives[:], self._is_over[:] = lives, is_over
        self._begins[:, 0] = _begins_anew(observations, ended)
        now.observations["obs"][:, 0] = observations
        now.rewards[:, 0] = np.where(ended, 0, rewards)
        # EnvPool calls an end at the limit of steps truncated alone.
        now.terminated[:, 0] = (terminated | is_game_over) & ~ended
        now.truncated[:, 0] = truncated & ~ended
        return self._records.finish(episodes)

    def render(self) -> Array | None:
        return picture(self._pool, of_first=True)

    @property
    def render_fps(self) -> float | None:
        return FRAMES_PER_SECOND / self.spaces.frames_per_step

    def close(self) -> None:
        self._pool.close()


def _begins_anew(stacks: Array, ended: BoolArray) -> BoolArray:
    """`[E]`: environments after an end whose stacks hold one frame again and again, as at the beginning of a game."""
    begins = ended.copy()
    if begins.any():
        begins[ended] = (stacks[ended] == stacks[ended, -1:]).all(axis=(1, 2, 3))
    return begins
