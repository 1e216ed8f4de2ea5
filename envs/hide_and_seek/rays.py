"""Lidar and lines of sight: all rays of an agent in one query.

Letters: E environments, A agents, L lidar rays, T targets of lines of sight (bodies, then food sites).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from envs.hide_and_seek.bodies import Bodies
from envs.hide_and_seek.world import World
from srlhpc.environment import BoolArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NO_HIT = 6.0
"""Distance where a lidar ray hits nothing; hits that are farther away are given as they are."""
_NO_CUTOFF = 1e10


class Seen(NamedTuple):
    """What rays found."""

    lidar: Floats
    """`[E, A, L]`, distances to whatever is nearest."""
    lines: BoolArray
    """`[E, A, T]`, whether a wanted line of sight meets its target first."""


class Rays:
    """Casts the rays of all agents.

    Args:
        num_environments: E.
        bodies: slots of bodies, of which the first are agents.
        food: food sites.
        lidar: L; ray j points to 2 pi j / L, counter-clockwise from the world's x axis.
    """

    def __init__(self, num_environments: int, bodies: Bodies, food: int, lidar: int) -> None:
        self._bodies, self._lidar = bodies, lidar
        agents, targets = bodies.slots.agents, bodies.slots.bodies + food
        shape = (num_environments, agents, lidar + targets)
        angles = 2 * np.pi * np.arange(lidar) / lidar
        self._directions: Floats = np.zeros((*shape, 3))
        self._directions[:, :, :lidar, 0], self._directions[:, :, :lidar, 1] = np.cos(angles), np.sin(angles)
        self._is_cast: BoolArray = np.zeros(shape, np.bool_)
        self._distances: Floats = np.zeros(shape)
        self._meets: BoolArray = np.zeros(shape, np.bool_)
        expected = np.concatenate((np.full(lidar, -1), np.arange(bodies.slots.bodies), np.full(food, -1)))
        self._expected: Ints = np.broadcast_to(expected, shape).ravel()
        """Slot that a line of sight is to meet; -1 for lidar and food."""
        is_food = np.arange(lidar + targets) >= lidar + bodies.slots.bodies
        self._is_food: BoolArray = np.broadcast_to(is_food, shape).ravel()
        self._env: Ints = np.repeat(np.arange(num_environments), agents * (lidar + targets))
        self._has_food = food > 0
        self._hit_slots: Ints = np.full((num_environments, 1), -1)
        """Slot of the body of geom g at `[E, g + 1]`, -1 for walls, floor and no geom."""
        self._agents: list[list[tuple[int, int]]] = [[] for _ in range(num_environments)]
        """Slot and body number of every agent, of each environment."""
        self._geoms: NDArray[np.int32] = np.zeros(self._expected.size, np.int32)
        self._found: Floats = np.zeros(self._expected.size)

    def enter(self, env: int, world: World) -> None:
        """Takes over a new world in an environment; its bodies have been entered."""
        slots = np.flatnonzero(self._bodies.exists[env])
        missing = len(world.geom_bodies) - self._hit_slots.shape[1]
        if missing > 0:
            self._hit_slots = np.pad(self._hit_slots, ((0, 0), (0, missing)), constant_values=-1)
        rows = world.geom_bodies
        found = np.where(rows >= 0, slots[rows], -1)
        self._hit_slots[env, 1 : len(found)] = found[:-1]
        agents = slots[: world.structure.agents].tolist()
        self._agents[env] = list(zip(agents, world.body_ids[: len(agents)].tolist(), strict=True))

    def cast(self, worlds: Sequence[World], wanted: BoolArray, food: Floats) -> Seen:
        """Casts all lidar rays and the wanted lines of sight from the agents' centres.

        Args:
            worlds: E.
            wanted: `[E, A, T]`.
            food: `[E, F, 3]`, food sites.
        """
        bodies, lidar = self._bodies, self._lidar
        origins = bodies.centres[:, : bodies.slots.agents]
        alive = bodies.exists[:, : bodies.slots.agents, None]
        lines = self._directions[:, :, lidar:]
        np.subtract(bodies.aims[:, None], origins[:, :, None], out=lines[:, :, : bodies.slots.bodies])
        if self._has_food:
            np.subtract(food[:, None], origins[:, :, None], out=lines[:, :, bodies.slots.bodies :])
        self._is_cast[:, :, :lidar] = alive
        np.logical_and(wanted, alive, out=self._is_cast[:, :, lidar:])
        index = np.flatnonzero(self._is_cast)
        self._ask(worlds, origins, self._directions.reshape(-1, 3).take(index, axis=0).ravel())
        geoms, found = self._geoms[: len(index)], self._found[: len(index)]
        env = self._env.take(index)
        meets = self._hit_slots[env, geoms + 1] == self._expected.take(index)
        if self._has_food:
            # A ray's length to a site is 1.
            meets = np.where(self._is_food.take(index), (found < 0.0) | (found >= 1.0), meets)
        self._meets[:] = False
        self._meets.reshape(-1)[index] = meets
        self._distances.reshape(-1)[index] = np.where(found < 0.0, NO_HIT, found)
        return Seen(self._distances[:, :, :lidar], self._meets[:, :, lidar:])

    def _ask(self, worlds: Sequence[World], origins: Floats, vectors: Floats) -> None:
        """One query an agent; the answers follow each other in the order of environments, agents and rays."""
        ends = iter(self._is_cast.sum(axis=2).ravel().cumsum().reshape(len(worlds), -1).tolist())
        geoms, found, ask, start = self._geoms, self._found, mujoco.mj_multiRay, 0
        for env, world in enumerate(worlds):
            model, data, env_ends = world.model, world.data, next(ends)
            for agent, body in self._agents[env]:
                end = env_ends[agent]
                ask(
                    model,
                    data,
                    origins[env, agent],
                    vectors[3 * start : 3 * end],
                    None,
                    True,
                    body,
                    geoms[start:end],
                    found[start:end],
                    None,
                    end - start,
                    _NO_CUTOFF,
                )
                start = end


def reach_of_sight(world: World, agent: int, origin: Floats, angles: Floats, most: float) -> Floats:
    """How far an agent could see horizontally.

    Args:
        world: the agent's world.
        agent: its row.
        origin: `[3]`, its centre.
        angles: directions in the world.
        most: what is given where nothing is hit nearer.

    Returns:
        Distances, one for each angle.
    """
    vectors = np.stack((np.cos(angles), np.sin(angles), np.zeros_like(angles)), axis=1).ravel()
    geoms, found = np.zeros(len(angles), np.int32), np.zeros(len(angles))
    mujoco.mj_multiRay(
        world.model,
        world.data,
        origin,
        vectors,
        None,
        True,
        int(world.body_ids[agent]),
        geoms,
        found,
        None,
        len(angles),
        _NO_CUTOFF,
    )
    return np.where(found < 0.0, most, np.minimum(found, most))
