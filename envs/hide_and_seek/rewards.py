"""Rewards of hiding, seeking and staying in.

Letters: E environments, A agents, H hiders, K seekers (A = H + K), O objects.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from envs.hide_and_seek.settings import Rectangle
from srlhpc.environment import BoolArray

Floats = NDArray[np.float64]

OUTSIDE = -10.0
"""Reward of an agent outside the rectangle."""


def team_rewards(
    sees: BoolArray, hiders: BoolArray, seekers: BoolArray, share: Literal["joint_zero_sum", "joint_mean", "selfish"]
) -> Floats:
    """Rewards of seeing and being seen: a hider has -1 if it is seen, else 1, a seeker 1 if it sees a hider, else -1.

    Args:
        sees: `[E, K, H]`, which hider a seeker sees; false for those who are not in the game.
        hiders: `[E, H]`, whether the hider is in the game.
        seekers: `[E, K]`.
        share: `joint_zero_sum` gives all hiders the lowest and all seekers the highest of their team, `joint_mean`
            the mean of the team, `selfish` everyone its own.

    Returns:
        `[E, A]`, 0 for those who are not in the game.
    """
    if share == "joint_zero_sum":
        caught = np.asarray(sees.any(axis=(1, 2)))[:, None]
        return np.concatenate((np.where(caught, -1.0, 1.0) * hiders, np.where(caught, 1.0, -1.0) * seekers), axis=1)
    hiding = np.where(sees.any(axis=1), -1.0, 1.0) * hiders
    seeking = np.where(sees.any(axis=2), 1.0, -1.0) * seekers
    if share == "joint_mean":
        hiding = hiders * (hiding.sum(axis=1) / hiders.sum(axis=1))[:, None]
        seeking = seekers * (seeking.sum(axis=1) / seekers.sum(axis=1))[:, None]
    return np.concatenate((hiding, seeking), axis=1)


def outside(centres: Floats, rectangle: Rectangle) -> BoolArray:
    """Whether centres `[..., 3]` are outside of a rectangle."""
    left, lower, right, upper = rectangle
    x, y = centres[..., 0], centres[..., 1]
    is_outside: BoolArray = (x < left) | (x > right) | (y < lower) | (y > upper)
    return is_outside


def penalize(rewards: Floats, agents_out: BoolArray, objects_out: BoolArray | None) -> None:
    """Replaces rewards by -10, in place.

    Args:
        rewards: `[E, A]`.
        agents_out: `[E, A]`, agents that are outside.
        objects_out: `[E, O]`, objects that are outside, for which all agents of the environment are punished; None if
            not.
    """
    rewards[agents_out] = OUTSIDE
    if objects_out is not None:
        rewards[objects_out.any(axis=1)] = OUTSIDE
