"""Writing what agents observe.

Letters: E environments, A agents, M = A - 1 others, O objects (B boxes, then R ramps), F food sites, S = A + O slots.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.hide_and_seek.bodies import Bodies
from envs.hide_and_seek.geometry import wrapped
from envs.hide_and_seek.lock import Locks
from envs.hide_and_seek.settings import Settings
from srlhpc.environment import Array, BoolArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def others(hiders: int, seekers: int, most_hiders: int, most_seekers: int) -> Ints:
    """The order in which agents see each other: agent i sees i - 1, i - 2, ..., counted around the agents in the game.

    Args:
        hiders: hiders in the game.
        seekers: seekers in the game.
        most_hiders: slots of hiders, which come first.
        most_seekers: slots of seekers.

    Returns:
        `[A, M]`, slots; -1 where there is nobody.
    """
    playing = [*range(hiders), *range(most_hiders, most_hiders + seekers)]
    order = np.full((most_hiders + most_seekers, most_hiders + most_seekers - 1), -1)
    for place, slot in enumerate(playing):
        order[slot, : len(playing) - 1] = [playing[place - back] for back in range(1, len(playing))]
    return order


class Observer:
    """Fills the observation arrays of all agents.

    Args:
        settings: of the environment.
        bodies: of all environments.
        locks: of all environments.
        arrays: key to `[E, A, ...]`, filled by `write`.
    """

    def __init__(self, settings: Settings, bodies: Bodies, locks: Locks, arrays: dict[str, Array]) -> None:
        slots, num_environments = bodies.slots, len(bodies.exists)
        self._bodies, self._locks, self._arrays = bodies, locks, arrays
        self._sizes, self._lock_ramps = settings.shows_box_sizes, settings.scenario.lock_ramps
        self._agents = np.zeros((num_environments * slots.agents + 1, 10), np.float32)
        """Agent elements of all environments; the last row stays zero, for nobody."""
        self._others: Ints = np.full((num_environments, slots.agents, slots.agents - 1), -1)
        """Rows of `_agents`."""
        self._sees_others: Ints = np.full_like(self._others, -1)
        """Places in the flat `[E, A, A]` mask; -1 for nobody."""
        self._sees = np.zeros(num_environments * slots.agents**2 + 1, np.bool_)
        self._missing: tuple[NDArray[np.signedinteger[Any]], ...] = np.nonzero(np.zeros((0, 0)))
        self._slot = np.arange(slots.agents)[None, :, None]

    def enter(self, env: int, hiders: int, seekers: int) -> None:
        """Writes what stays for an episode of an environment: who exists, and in which order agents see each other."""
        slots, arrays = self._bodies.slots, self._arrays
        order, exists = others(hiders, seekers, slots.hiders, slots.seekers), self._bodies.exists
        alive = exists[env, : slots.agents, None]
        agent = np.arange(slots.agents)[:, None]
        self._others[env] = np.where(order >= 0, env * slots.agents + order, -1)
        self._sees_others[env] = np.where(order >= 0, (env * slots.agents + agent) * slots.agents + order, -1)
        arrays["mask_aa_obs_spoof"][env] = order >= 0
        boxes, ramps = slots.agents, slots.agents + slots.boxes
        if slots.boxes:
            arrays["mask_ab_obs_spoof"][env] = exists[env, boxes:ramps] & alive
        if slots.ramps:
            arrays["mask_ar_obs_spoof"][env] = exists[env, ramps:] & alive
        if "food_obs" in arrays:
            arrays["mask_af_obs_spoof"][env] = alive
        self._missing = np.nonzero(~exists[:, : slots.agents])

    def write(self, prep: Floats, sees: BoolArray, lidar: Floats) -> None:
        """Writes what changes with every step, but for food.

        Args:
            prep: `[E]`, how far preparation is, 1 when it is over.
            sees: `[E, A, S]` or longer, who sees what.
            lidar: `[E, A, L]`.
        """
        slots, arrays = self._bodies.slots, self._arrays
        boxes, ramps = slots.agents, slots.agents + slots.boxes
        self._write_agents(prep, sees)
        arrays["lidar"][:, :, 0] = lidar
        if slots.objects:
            elements, locks = self._object_elements(), self._lock_flags()
        if slots.boxes:
            arrays["mask_ab_obs"][:] = sees[:, :, boxes:ramps]
            box_obs = arrays["box_obs"]
            box_obs[..., :9] = elements[:, None, : slots.boxes]
            if self._sizes:
                box_obs[..., 9:12] = 2.0 * self._bodies.half_sizes[:, None, boxes:ramps]
            box_obs[..., -3:] = locks[:, :, : slots.boxes]
        if slots.ramps:
            arrays["mask_ar_obs"][:] = sees[:, :, ramps : ramps + slots.ramps]
            arrays["ramp_obs"][..., :9] = elements[:, None, slots.boxes :]
            if self._lock_ramps:
                arrays["ramp_obs"][..., -3:] = locks[:, :, slots.boxes :]
        self.clear_missing()

    def clear_missing(self) -> None:
        """Agents that are not in the game observe zeros."""
        if len(self._missing[0]):
            for array in self._arrays.values():
                array[self._missing] = 0

    def _write_agents(self, prep: Floats, sees: BoolArray) -> None:
        slots, bodies, arrays = self._bodies.slots, self._bodies, self._arrays
        elements = self._agents[:-1].reshape(len(prep), slots.agents, 10)
        elements[..., :4] = bodies.positions[:, : slots.agents]
        elements[..., 4:8] = bodies.velocities[:, : slots.agents]
        elements[..., 8] = slots.is_hider
        elements[..., 9] = prep[:, None]
        arrays["observation_self"][:] = elements
        self._agents.take(self._others, axis=0, out=arrays["agent_qpos_qvel"], mode="wrap")
        self._sees[:-1].reshape(len(prep), slots.agents, slots.agents)[:] = sees[:, :, : slots.agents]
        self._sees.take(self._sees_others, out=arrays["mask_aa_obs"], mode="wrap")

    def _object_elements(self) -> Floats:
        """`[E, O, 9]`: position, angle as cosine and sine, velocities; zeros where there is no object."""
        bodies, first = self._bodies, self._bodies.slots.agents
        positions, angles = bodies.positions[:, first:, :3], wrapped(bodies.positions[:, first:, 3])
        exists = bodies.exists[:, first:]
        elements: Floats = np.empty((*angles.shape, 9))
        elements[..., :3] = positions
        elements[..., 3] = np.cos(angles) * exists
        elements[..., 4] = np.sin(angles)
        elements[..., 5:] = bodies.velocities[:, first:]
        return elements

    def _lock_flags(self) -> BoolArray:
        """`[E, A, O, 3]`: locked by me, by my team, by anybody."""
        locked, owners = self._locks.locked, self._locks.owners
        flags = np.empty((*np.broadcast_shapes(owners[:, None].shape, self._slot.shape), 3), np.bool_)
        flags[..., 2] = locked[:, None]
        np.logical_and(flags[..., 2], owners[:, None] == self._slot, out=flags[..., 0])
        np.logical_and(flags[..., 2], self._locks.is_owners_team(), out=flags[..., 1])
        return flags
