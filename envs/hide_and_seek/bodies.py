"""All environments' moving bodies side by side, padded to the largest world.

Letters: E environments, A agents, O objects (boxes, then ramps), S = A + O slots of bodies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from envs.hide_and_seek.layout import Layout
from envs.hide_and_seek.settings import Settings
from envs.hide_and_seek.world import World
from srlhpc.environment import BoolArray, SavedState

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FASTEST = 1e4
"""No velocity of a game comes near this."""


class Slots:
    """Where the bodies of an environment are kept: hiders, seekers, boxes, ramps, each up to its highest number."""

    def __init__(self, settings: Settings) -> None:
        self.hiders, self.seekers = settings.hiders[1], settings.seekers[1]
        self.boxes, self.ramps = settings.scenario.boxes[1], settings.scenario.ramps
        self.agents = self.hiders + self.seekers
        self.objects = self.boxes + self.ramps
        self.bodies = self.agents + self.objects
        self.is_hider: BoolArray = np.arange(self.agents) < self.hiders

    def of(self, layout: Layout) -> Ints:
        """Slot of every body of a world, in the world's order."""
        starts_and_numbers = (
            (0, layout.hiders),
            (self.hiders, layout.seekers),
            (self.agents, len(layout.boxes)),
            (self.agents + self.boxes, len(layout.ramps)),
        )
        return np.concatenate([np.arange(start, start + number) for start, number in starts_and_numbers])


class Bodies:
    """Positions and velocities of the bodies of E environments.

    Attributes:
        exists: `[E, S]`.
        positions: `[E, S, 4]`, x, y, z of the lower corner, and the angle.
        velocities: `[E, S, 4]`.
        half_sizes: `[E, S, 3]` of the body's place.
        centres: `[E, S, 3]` of the body's place.
        aims: `[E, S, 3]`, where lines of sight to the body end.
        rows: `[E, S]`, the world's row of each slot, -1 where there is no body.
        filled_agents: E, slots of the agents in the game.
    """

    def __init__(self, slots: Slots, num_environments: int) -> None:
        shape = (num_environments, slots.bodies)
        self.slots = slots
        self.exists: BoolArray = np.zeros(shape, np.bool_)
        self.positions: Floats = np.zeros((*shape, 4))
        self.velocities: Floats = np.zeros((*shape, 4))
        self.half_sizes: Floats = np.zeros((*shape, 3))
        self.centres: Floats = np.zeros((*shape, 3))
        self.aims: Floats = np.zeros((*shape, 3))
        self.rows: Ints = np.full(shape, -1)
        self._last_positions = np.zeros((*shape, 4))
        self._aim_offsets: Floats = np.zeros((*shape, 3))
        self._filled: list[Ints | slice] = [slice(0, 0)] * num_environments
        self.filled_agents: list[Ints | slice] = [slice(0, 0)] * num_environments
        self._places: Ints | None = None
        """Rows of all environments' bodies in the flattened arrays, once they are known."""
        # Agents and boxes are aimed at in the middle of their places; only ramps need more.
        self._ramps = slice(slots.agents + slots.boxes, slots.bodies)

    def enter(self, env: int, layout: Layout, world: World) -> None:
        """Takes over the bodies of a new world in an environment."""
        filled = self.slots.of(layout)
        for array in (self.positions, self.velocities, self.half_sizes, self._aim_offsets, self._last_positions):
            array[env] = 0.0
        self.exists[env] = False
        self.exists[env, filled] = True
        self.rows[env] = -1
        self.rows[env, filled] = np.arange(len(filled))
        self.half_sizes[env, filled] = world.structure.half_sizes
        self._aim_offsets[env, filled] = world.aims
        self._filled[env] = slice(None) if len(filled) == self.slots.bodies else filled
        agents = filled[: world.structure.agents]
        self.filled_agents[env] = slice(self.slots.agents) if len(agents) == self.slots.agents else agents
        self._places = None
        self.positions[env, filled] = world.positions
        self.velocities[env, filled] = world.velocities

    def begin_step(self) -> None:
        """Keeps the positions before a step, so that a step that fails can be taken back."""
        self._last_positions[:] = self.positions

    def read(self, worlds: Sequence[World]) -> None:
        """Takes positions and velocities from the worlds of all environments."""
        if self._places is None:
            self._places = np.flatnonzero(self.exists)
        self.positions.reshape(-1, 4)[self._places] = np.concatenate([world.positions for world in worlds])
        self.velocities.reshape(-1, 4)[self._places] = np.concatenate([world.velocities for world in worlds])

    def take_back(self, env: int, world: World) -> None:
        """Returns an environment whose simulation failed to the positions before the step, at rest."""
        self.positions[env] = self._last_positions[env]
        self.velocities[env] = 0.0
        self.write(env, world)

    def write(self, env: int, world: World) -> None:
        """Puts positions and velocities into an environment's world."""
        world.positions[:] = self.positions[env, self._filled[env]]
        world.velocities[:] = self.velocities[env, self._filled[env]]
        world.update()

    def is_sound(self) -> BoolArray:
        """`[E]`: whether the numbers of an environment are those of a game; false for what is infinite or not a
        number."""
        slow = np.asarray((np.abs(self.velocities) < _FASTEST).all(axis=(1, 2)))
        return slow & np.asarray(np.isfinite(self.positions).all(axis=(1, 2)))

    def locate(self) -> None:
        """Works out centres and aims from the positions."""
        np.add(self.positions[:, :, :3], self.half_sizes, out=self.centres)
        self.aims[:] = self.centres
        if self.slots.ramps:
            angles, offsets = self.positions[:, self._ramps, 3], self._aim_offsets[:, self._ramps]
            cos, sin = np.cos(angles), np.sin(angles)
            aims = self.aims[:, self._ramps]
            aims[:, :, 0] += cos * offsets[:, :, 0] - sin * offsets[:, :, 1]
            aims[:, :, 1] += sin * offsets[:, :, 0] + cos * offsets[:, :, 1]
            aims[:, :, 2] += offsets[:, :, 2]

    def padded(self, env: int, rows: Floats) -> Floats:
        """`[S, 4]`: an array of a world's rows, with zeros where there is no body."""
        padded: Floats = np.zeros((self.slots.bodies, 4))
        padded[self._filled[env]] = rows
        return padded

    def rows_of(self, env: int, padded: Floats) -> Floats:
        """The world's rows of a padded array `[S, 4]`."""
        rows: Floats = padded[self._filled[env]]
        return rows

    def save_state(self) -> SavedState:
        return {"positions": self.positions.copy(), "velocities": self.velocities.copy()}

    def load_state(self, state: SavedState) -> None:
        """Loads positions and velocities; the environments' worlds have been entered."""
        self.positions[:] = state["positions"]
        self.velocities[:] = state["velocities"]
