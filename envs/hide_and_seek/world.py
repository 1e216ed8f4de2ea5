"""One simulated world: a compiled model that takes layout after layout, and what agents do to its objects."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from envs.hide_and_seek.layout import Layout
from envs.hide_and_seek.model import (
    HIDER_COLOR,
    OUTER_WALL_COLOR,
    SEEKER_COLOR,
    SUBSTEPS,
    WALL_COLOR,
    Structure,
    compile_model,
)
from envs.hide_and_seek.walls import Wall

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PARKED = (0.0, 0.0, -100.0)


class World:
    """A world of one structure.

    Every array has one row a moving body (agents, boxes, ramps) with x, y, z of its lower corner and its angle.

    Attributes:
        positions: `[bodies, 4]`, a view into the simulation.
        velocities: `[bodies, 4]`, a view.
        warm_start: `[bodies, 4]`, a view: accelerations that the solver starts from.
        controls: `[agents, 3]`, a view: forces along x, y and about z in units of the motors' gear.
        body_ids: `[bodies]`, the simulator's numbers.
        geom_bodies: `[geoms + 1]`, row of the moving body of each geom; -1 for walls, floor and (last) no geom.
        aims: `[bodies, 3]`, where lines of sight end, relative to the centre of the body's place in its own frame.
    """

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.model: Any = compile_model(structure)
        self.data: Any = mujoco.MjData(self.model)
        bodies = structure.bodies
        self.positions: Floats = self.data.qpos.reshape(bodies, 4)
        self.velocities: Floats = self.data.qvel.reshape(bodies, 4)
        self.warm_start: Floats = self.data.qacc_warmstart.reshape(bodies, 4)
        self.controls: Floats = self.data.ctrl.reshape(structure.agents, 3)
        first = self.model.nbody - bodies
        self.body_ids: Ints = np.arange(first, self.model.nbody)
        rows = np.where(self.model.geom_bodyid < first, -1, self.model.geom_bodyid - first)
        self.geom_bodies: Ints = np.append(rows, -1).astype(np.int64)
        self.aims: Floats = np.zeros((bodies, 3))
        for row, body in enumerate(self.body_ids.tolist()):
            self.aims[row] = self.model.geom_pos[self.model.body_geomadr[body]]
        self._limited: Any = self.model.jnt_limited.reshape(bodies, 4)
        self._ranges: Floats = self.model.jnt_range.reshape(bodies, 4, 2)
        wall_bodies = range(1, 1 + structure.walls)
        self._agent_geoms = np.flatnonzero((self.geom_bodies >= 0) & (self.geom_bodies < structure.agents))
        self._wall_geoms: list[int] = [int(self.model.body_geomadr[body]) for body in wall_bodies]
        self._wall_boxes: list[int] = [int(self.model.body_bvhadr[body]) for body in wall_bodies]

    def place(self, layout: Layout) -> None:
        """Starts anew from a layout of this structure: nothing moves, is locked or is held."""
        mujoco.mj_resetData(self.model, self.data)
        self._limited[:] = 0
        self.model.eq_obj2id[:] = 0
        for slot in range(self.structure.walls):
            if slot < len(layout.walls):
                self._set_wall(slot, layout.walls[slot])
            else:
                self._park_wall(slot)
        is_hider = self.geom_bodies[self._agent_geoms, None] < layout.hiders
        self.model.geom_rgba[self._agent_geoms] = np.where(is_hider, HIDER_COLOR, SEEKER_COLOR)
        self.positions[:, :2] = np.concatenate((layout.agents, layout.boxes, layout.ramps))
        self.update()

    def _set_wall(self, slot: int, wall: Wall) -> None:
        model, geom = self.model, self._wall_geoms[slot]
        left, lower, right, upper = wall.rectangle()
        half = (right - left) / 2, (upper - lower) / 2, wall.height / 2
        model.body_pos[1 + slot] = (left + right) / 2, (lower + upper) / 2, wall.height / 2
        model.geom_size[geom] = half
        model.geom_rbound[geom] = np.sqrt(np.square(half).sum())
        model.geom_aabb[geom, 3:] = half
        model.bvh_aabb[self._wall_boxes[slot], 3:] = half
        model.geom_rgba[geom] = OUTER_WALL_COLOR if wall.outer else WALL_COLOR
        model.geom_contype[geom] = model.geom_conaffinity[geom] = 1

    def _park_wall(self, slot: int) -> None:
        """Takes a wall out of the world: nothing touches it, and rays pass what is fully transparent."""
        model, geom = self.model, self._wall_geoms[slot]
        model.body_pos[1 + slot] = _PARKED
        model.geom_rgba[geom] = 0.0
        model.geom_contype[geom] = model.geom_conaffinity[geom] = 0

    def step(self) -> None:
        """Lets the controls act for one step."""
        mujoco.mj_step(self.model, self.data, SUBSTEPS)
        self.update()

    def update(self) -> None:
        """Works out where geoms are after the positions were changed."""
        mujoco.mj_kinematics(self.model, self.data)

    def hold(self, agent: int, body: int, position: Floats, quaternion: Floats) -> None:
        """Welds a body to an agent at a pose relative to the agent."""
        self.model.eq_obj2id[agent] = self.body_ids[body]
        pose = self.model.eq_data[agent]
        pose[:3] = 0.0
        pose[3:6] = position
        pose[6:10] = quaternion
        pose[10] = 1.0
        self.data.eq_active[agent] = 1

    def release(self, agent: int) -> None:
        """Ends an agent's weld."""
        self.model.eq_obj2id[agent] = 0
        self.data.eq_active[agent] = 0

    def lock(self, body: int, position: Floats) -> None:
        """Limits all joints of a body to a position `[4]`."""
        self._ranges[body] = position[:, None]
        self._limited[body] = 1

    def unlock(self, body: int) -> None:
        """Frees the joints of a body."""
        self._limited[body] = 0
