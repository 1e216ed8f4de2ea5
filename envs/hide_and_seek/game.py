"""E worlds of the game: what agents do in them and what they perceive; no rewards, no episodes.

Letters: E environments, A agents, O objects (boxes, then ramps), F food sites, S = A + O bodies, T = S + F targets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from envs.hide_and_seek.bodies import Bodies, Slots
from envs.hide_and_seek.geometry import distance_to_cuboids, in_cone
from envs.hide_and_seek.grab import REACH, Grabs
from envs.hide_and_seek.layout import Layout
from envs.hide_and_seek.lock import Locks
from envs.hide_and_seek.meals import Meals
from envs.hide_and_seek.model import SLIPPERY, structure_of
from envs.hide_and_seek.pool import SHARED, WorldPool
from envs.hide_and_seek.rays import Rays
from envs.hide_and_seek.settings import BINS, Quadrant, Settings
from envs.hide_and_seek.world import World
from srlhpc.environment import Array, BoolArray, SavedState

Floats = NDArray[np.float64]

FORCES: Floats = 0.18 * (np.arange(BINS, dtype=np.float64) - BINS // 2)
"""Control of each bin, in units of the motors' gear."""
PULL, LOCK = 3, 4
"""Places in an action, after the three bins."""
ROUGH = 1.0
"""Friction of walls in random walls: the simulator's own."""


class Game:
    """Worlds, bodies, locks, grabs, food and sight of E environments.

    Args:
        settings: of the environment.
        num_environments: E.
        pool: where worlds come from and go to.

    Attributes:
        worlds: E, once all environments have been started.
        layouts: E, as the worlds began.
        sees: `[E, A, T]`, who sees what now.
        lidar: `[E, A, L]`, distances.
    """

    def __init__(self, settings: Settings, num_environments: int, pool: WorldPool = SHARED) -> None:
        self.slots = Slots(settings)
        self.bodies = Bodies(self.slots, num_environments)
        self.grabs = Grabs(num_environments, self.bodies)
        self.locks = Locks(num_environments, self.bodies, lock_ramps=settings.scenario.lock_ramps)
        self.meals = Meals(num_environments, settings.food)
        self.worlds: list[World] = []
        self.layouts: list[Layout] = []
        self.sees: BoolArray = np.zeros((num_environments, self.slots.agents, self.slots.bodies), np.bool_)
        self.lidar: Floats = np.zeros((num_environments, self.slots.agents, settings.lidar_rays))
        self._rays = Rays(num_environments, self.bodies, self.meals.sites.shape[1], settings.lidar_rays)
        self._pool = pool
        self._cone_to_centres = settings.cone_to_centres
        scenario = settings.scenario
        is_quadrant = isinstance(scenario, Quadrant)
        self._wall_friction = SLIPPERY if is_quadrant else ROUGH
        # Outer walls, and two pieces of every inner one.
        self._wall_slots = 8 if isinstance(scenario, Quadrant) else 4 + 2 * (scenario.rooms[1] - 1)

    def start(self, env: int, layout: Layout) -> None:
        """Begins anew from a layout in an environment; environments are started in turn for the first time."""
        structure = structure_of(layout, self._wall_slots, self._wall_friction)
        if env < len(self.worlds):
            self._pool.give_back(self.worlds[env])
            self.worlds[env], self.layouts[env] = self._pool.take(structure), layout
        else:
            self.worlds.append(self._pool.take(structure))
            self.layouts.append(layout)
        world = self.worlds[env]
        world.place(layout)
        self.bodies.enter(env, layout, world)
        self._rays.enter(env, world)
        self.grabs.enter(env)
        self.locks.enter(env)
        self.meals.enter(env, layout)

    def act(self, actions: Array, randoms: Sequence[np.random.Generator]) -> None:
        """Grabs, locks and sets the motors, by what was seen before and where everything is now.

        Args:
            actions: `[E, A, 5]`.
            randoms: E.
        """
        slots, bodies = self.slots, self.bodies
        if slots.objects:
            things = slice(slots.agents, slots.bodies)
            distances = distance_to_cuboids(
                bodies.centres[:, : slots.agents],
                bodies.centres[:, things],
                bodies.positions[:, things, 3],
                bodies.half_sizes[:, things],
            )
            near = (distances <= REACH) & self.sees[:, :, things]
            self.grabs.update(self.worlds, actions[:, :, PULL] == 1, near, distances)
            self.locks.update(self.worlds, actions[:, :, LOCK] == 1, near, randoms)
        controls = FORCES.take(actions[:, :, :PULL])
        for env, world in enumerate(self.worlds):
            world.controls[:] = controls[env, bodies.filled_agents[env]]

    def perceive(self) -> None:
        """Works out who sees what, and lidar, from the positions now."""
        bodies, agents = self.bodies, slice(self.slots.agents)
        bodies.locate()
        corners = bodies.centres if self._cone_to_centres else bodies.positions
        origins = bodies.centres[:, agents, :2] if self._cone_to_centres else bodies.positions[:, agents, :2]
        wanted = in_cone(origins, bodies.positions[:, agents, 3], corners[:, :, :2])
        wanted &= bodies.exists[:, None]
        wanted[:, range(self.slots.agents), range(self.slots.agents)] = False
        if self.meals.sites.shape[1]:
            centres = bodies.centres[:, agents, :2]
            food = in_cone(centres, bodies.positions[:, agents, 3], self.meals.sites[:, :, :2])
            wanted = np.concatenate((wanted, food), axis=2)
        seen = self._rays.cast(self.worlds, wanted, self.meals.sites)
        self.lidar, self.sees = seen.lidar, seen.lines

    def close(self) -> None:
        """Gives all worlds back."""
        while self.worlds:
            self._pool.give_back(self.worlds.pop())
        self.layouts.clear()

    def save_state(self) -> SavedState:
        """All but the layouts."""
        warm = [self.bodies.padded(env, world.warm_start) for env, world in enumerate(self.worlds)]
        return {
            **self.bodies.save_state(),
            **self.grabs.save_state(),
            **self.locks.save_state(),
            **self.meals.save_state(),
            "warm_start": np.array(warm).reshape(self.bodies.positions.shape),
        }

    def load_state(self, state: SavedState, layouts: Sequence[Layout]) -> None:
        """Goes on from a saved state.

        Args:
            state: from `save_state`.
            layouts: E, as they were then.
        """
        for env, layout in enumerate(layouts):
            self.start(env, layout)
        self.bodies.load_state(state)
        for env, world in enumerate(self.worlds):
            self.bodies.write(env, world)
            world.warm_start[:] = self.bodies.rows_of(env, state["warm_start"][env])
        self.grabs.load_state(state, self.worlds)
        self.locks.load_state(state, self.worlds)
        self.meals.load_state(state)
        self.perceive()
