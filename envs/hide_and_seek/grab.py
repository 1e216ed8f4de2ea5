"""Grabbing: which object an agent holds, and how it is tied to the agent.

Letters: E environments, A agents, O objects.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from envs.hide_and_seek.bodies import Bodies
from envs.hide_and_seek.world import World
from srlhpc.environment import BoolArray, SavedState

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOTHING = -1
REACH = 0.25
"""Distance from an agent's centre within which it grabs and locks."""


def nearest_candidates(distances: Floats, candidates: BoolArray) -> Ints:
    """The object that each agent holds: its nearest candidate, or `NOTHING`.

    Args:
        distances: `[E, A, O]`.
        candidates: `[E, A, O]`.

    Returns:
        `[E, A]`.
    """
    nearest = np.where(candidates, distances, np.inf).argmin(axis=2)
    return np.where(candidates.any(axis=2), nearest, NOTHING)


def relative_pose(agent: Floats, agent_centre: Floats, body: Floats, body_centre: Floats) -> tuple[Floats, Floats]:
    """Where a body is as seen by an agent: position in the agent's frame, and quaternion (w, x, y, z).

    Args:
        agent: `[4]`, position with angle.
        agent_centre: `[3]`.
        body: `[4]`, position with angle.
        body_centre: `[3]`.
    """
    x, y, z = (body_centre - agent_centre).tolist()
    cos, sin = math.cos(agent[3]), math.sin(agent[3])
    half = (body[3] - agent[3]) / 2
    return np.array((x * cos + y * sin, y * cos - x * sin, z)), np.array((math.cos(half), 0.0, 0.0, math.sin(half)))


class Grabs:
    """What every agent holds.

    Attributes:
        held: `[E, A]`, object or `NOTHING`.
        poses: `[E, A, 7]`, pose of the held object relative to the agent: position and quaternion.
    """

    def __init__(self, num_environments: int, bodies: Bodies) -> None:
        self._bodies = bodies
        self.held: Ints = np.full((num_environments, bodies.slots.agents), NOTHING)
        self.poses: Floats = np.zeros((num_environments, bodies.slots.agents, 7))

    def enter(self, env: int) -> None:
        """Forgets what was held in an environment that starts anew."""
        self.held[env] = NOTHING
        self.poses[env] = 0.0

    def update(self, worlds: Sequence[World], pulls: BoolArray, near: BoolArray, distances: Floats) -> None:
        """Lets agents hold their nearest candidates.

        A pose is taken when an object is grabbed and stays while the same object is held.

        Args:
            worlds: E.
            pulls: `[E, A]`.
            near: `[E, A, O]`, whether the agent saw the object and is close to it.
            distances: `[E, A, O]`.
        """
        held = nearest_candidates(distances, near & pulls[:, :, None])
        environments, agents = np.nonzero(held != self.held)
        self.held = held
        for env, agent in zip(environments.tolist(), agents.tolist(), strict=True):
            row, thing = int(self._bodies.rows[env, agent]), int(held[env, agent])
            if thing == NOTHING:
                worlds[env].release(row)
                continue
            bodies, slot = self._bodies, self._bodies.slots.agents + thing
            position, quaternion = relative_pose(
                bodies.positions[env, agent],
                bodies.centres[env, agent],
                bodies.positions[env, slot],
                bodies.centres[env, slot],
            )
            self.poses[env, agent] = (*position, *quaternion)
            self._tie(worlds[env], env, agent)

    def _tie(self, world: World, env: int, agent: int) -> None:
        rows, pose = self._bodies.rows[env], self.poses[env, agent]
        thing = int(rows[self._bodies.slots.agents + self.held[env, agent]])
        world.hold(int(rows[agent]), thing, pose[:3], pose[3:])

    def save_state(self) -> SavedState:
        return {"held": self.held.copy(), "grab_poses": self.poses.copy()}

    def load_state(self, state: SavedState, worlds: Sequence[World]) -> None:
        """Ties again what was held; the worlds hold nothing yet."""
        self.held = state["held"].copy()
        self.poses[:] = state["grab_poses"]
        for env, agent in np.argwhere(self.held != NOTHING).tolist():
            self._tie(worlds[env], env, agent)
