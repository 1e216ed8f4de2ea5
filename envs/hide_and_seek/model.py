"""Building MuJoCo models of the game: bodies, joints, motors, and slots for walls that are filled later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import mujoco
import numpy as np

from envs.hide_and_seek.layout import AGENT_SIZE, ALONG_X, ALONG_Y, CUBE, RAMP, Layout

TIMESTEP = 0.005
SUBSTEPS = 15
GRAVITY = -50.0
GEAR = 100.0
AGENT_RADIUS = AGENT_SIZE[0] / 2
ARM_RADIUS = 0.05
ARMS = ((0.13, -0.075, -0.05), (-0.13, -0.075, -0.05))
"""Centres of the arms; agents face -y at angle 0."""
FLOOR_FRICTION = 0.2
BOX_FRICTION = 0.2
SLIPPERY = 0.01
"""Friction of agents and ramps, and of walls in the quadrant."""
WALL_COLOR = (0.0, 1.0, 0.0, 1.0)
OUTER_WALL_COLOR = (0.0, 1.0, 0.0, 0.1)
HIDER_COLOR = (66 / 255, 235 / 255, 244 / 255, 1.0)
SEEKER_COLOR = (1.0, 0.0, 0.0, 1.0)
BOX_COLOR = (0.85, 0.65, 0.3, 1.0)
RAMP_COLOR = (0.55, 0.4, 0.75, 1.0)
WEDGE = (
    (-0.25, -0.25, -0.25),
    (-0.25, 0.25, -0.25),
    (0.25, -0.25, -0.25),
    (0.25, 0.25, -0.25),
    (-0.25, -0.25, 0.25),
    (0.25, -0.25, 0.25),
)
"""Corners of a ramp: a vertical face at -y, the slope rises from +y to -y."""


class Structure(NamedTuple):
    """What a compiled model is made for; worlds of one structure differ in positions and walls only."""

    agents: int
    """Agents of both teams."""
    along_x: int
    """Elongated boxes along x."""
    along_y: int
    cubes: int
    ramps: int
    walls: int
    """Slots for walls."""
    wall_friction: float

    @property
    def boxes(self) -> int:
        return self.along_x + self.along_y + self.cubes

    @property
    def bodies(self) -> int:
        """Bodies that move: agents, boxes, ramps, in this order."""
        return self.agents + self.boxes + self.ramps

    @property
    def half_sizes(self) -> list[tuple[float, float, float]]:
        """Half the edges of every body's place; agents as the cube around the ball."""
        sizes = [AGENT_SIZE] * self.agents
        sizes += [ALONG_X] * self.along_x + [ALONG_Y] * self.along_y + [CUBE] * self.cubes + [RAMP] * self.ramps
        return [(x / 2, y / 2, z / 2) for x, y, z in sizes]


def structure_of(layout: Layout, wall_slots: int, wall_friction: float) -> Structure:
    """The structure that a layout needs."""
    edges = [tuple(row) for row in layout.box_sizes.tolist()]
    return Structure(
        agents=len(layout.agents),
        along_x=edges.count(ALONG_X),
        along_y=edges.count(ALONG_Y),
        cubes=edges.count(CUBE),
        ramps=len(layout.ramps),
        walls=wall_slots,
        wall_friction=wall_friction,
    )


def compile_model(structure: Structure) -> Any:
    """The model of a structure; its walls are parked (see `World.place`).

    Every moving body has four joints of one degree of freedom, in this order: slides along the world's x, y and z
    whose positions are those of the body's lower corner, and a hinge about z.
    """
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep = TIMESTEP
    spec.option.gravity = (0.0, 0.0, GRAVITY)
    # A diverged simulation is to be seen by the caller, not replaced by the initial state.
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    # Dense matrices are faster even with the most objects (68 degrees of freedom: 5 % of the physics).
    spec.option.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    spec.add_mesh(name="wedge", uservert=np.array(WEDGE).ravel())
    world = spec.worldbody
    world.add_geom(
        name="floor",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        pos=(3.0, 3.0, 0.0),
        size=(3.0, 3.0, 0.1),
        friction=(FLOOR_FRICTION, 0.005, 0.0001),
    )
    for number in range(structure.walls):
        _add_wall(world, f"wall_{number}", structure.wall_friction)
    half_sizes = iter(structure.half_sizes)
    for number in range(structure.agents):
        _add_agent(spec, f"agent_{number}", next(half_sizes))
    for number in range(structure.boxes):
        _add_box(world, f"box_{number}", next(half_sizes))
    for number in range(structure.ramps):
        _add_ramp(world, f"ramp_{number}", next(half_sizes))
    return spec.compile()


def _add_wall(world: Any, name: str, friction: float) -> None:
    body = world.add_body(name=name, pos=(0.0, 0.0, -100.0))
    body.add_geom(
        name=name,
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=(0.1, 0.1, 0.1),
        # Of no effect on what stands still, but it makes the body's inertial frame, to which its bounding box belongs.
        mass=1.0,
        friction=(friction, 0.005, 0.0001),
        group=1,
        rgba=WALL_COLOR,
    )


def _add_joints(body: Any, name: str, dampings: tuple[float, float, float, float]) -> None:
    axes = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0), "rz": (0.0, 0.0, 1.0)}
    for (axis, direction), damping in zip(axes.items(), dampings, strict=True):
        kind = mujoco.mjtJoint.mjJNT_HINGE if axis == "rz" else mujoco.mjtJoint.mjJNT_SLIDE
        body.add_joint(
            name=f"{name}_{axis}", type=kind, axis=direction, damping=damping, limited=mujoco.mjtLimited.mjLIMITED_FALSE
        )


def _add_agent(spec: Any, name: str, half_size: tuple[float, float, float]) -> None:
    body = spec.worldbody.add_body(name=name, pos=half_size)
    _add_joints(body, name, (10.0, 10.0, 1.0, 10.0))
    for number, (position, radius, mass) in enumerate(
        [((0.0, 0.0, 0.0), AGENT_RADIUS, 1.0), *((arm, ARM_RADIUS, 0.0) for arm in ARMS)]
    ):
        body.add_geom(
            name=f"{name}_{number}",
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            pos=position,
            size=(radius, 0.0, 0.0),
            mass=mass,
            friction=(SLIPPERY, 0.005, 0.0001),
        )
    for axis in ("x", "y", "rz"):
        motor = spec.add_actuator(
            name=f"{name}_{axis}",
            target=f"{name}_{axis}",
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            gear=(GEAR, 0, 0, 0, 0, 0),
        )
        motor.set_to_motor()
    spec.add_equality(
        name=f"{name}_grab",
        type=mujoco.mjtEq.mjEQ_WELD,
        objtype=mujoco.mjtObj.mjOBJ_BODY,
        name1=name,
        name2="world",
        active=False,
    )


def _add_box(world: Any, name: str, half_size: tuple[float, float, float]) -> None:
    shape = {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": half_size}
    _add_object(world, name, half_size, 0.01, shape, BOX_FRICTION, BOX_COLOR)


def _add_ramp(world: Any, name: str, half_size: tuple[float, float, float]) -> None:
    shape = {"type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": "wedge"}
    _add_object(world, name, half_size, 0.1, shape, SLIPPERY, RAMP_COLOR)


def _add_object(
    world: Any,
    name: str,
    half_size: tuple[float, float, float],
    damping: float,
    shape: Mapping[str, Any],
    friction: float,
    color: tuple[float, float, float, float],
) -> None:
    body = world.add_body(name=name, pos=half_size)
    _add_joints(body, name, (damping,) * 4)
    body.add_geom(name=name, mass=1.0, friction=(friction, 0.005, 0.0001), rgba=color, **shape)
