"""A top view of one world: who sees what, what is locked and who holds it."""

from __future__ import annotations

import math

import numpy as np

from envs._canvas import Canvas, Color
from envs.hide_and_seek.game import Game
from envs.hide_and_seek.geometry import CONE, FACING
from envs.hide_and_seek.grab import NOTHING
from envs.hide_and_seek.model import AGENT_RADIUS, ARM_RADIUS, ARMS
from envs.hide_and_seek.rays import reach_of_sight
from srlhpc.environment import Array

PIXELS = 480
MARGIN = 0.4
"""What is shown around the floor."""
OPEN_MARGIN = 2.0
"""What is shown around a floor without walls around it."""
_OUTSIDE: Color = (214, 214, 210)
_FLOOR: Color = (246, 245, 240)
_WALL: Color = (96, 104, 100)
_OUTER_WALL: Color = (150, 158, 154)
_HIDER: Color = (20, 140, 200)
_SEEKER: Color = (215, 50, 45)
_FROZEN: Color = (222, 160, 156)
_BOX: Color = (224, 186, 118)
_EDGE: Color = (120, 92, 50)
_RAMP_LOW: Color = (226, 216, 238)
_RAMP_HIGH: Color = (118, 84, 160)
_FOOD: Color = (90, 170, 60)
_SIGHT_RAYS = 271


def draw(game: Game, env: int, floor: float, *, preparing: bool) -> Array:
    """Draws an environment from above, uint8 `[height, width, 3]`.

    Vision cones end at what blocks them at the agents' height. A locked object has a frame and a cross in the colour
    of its owner's team. A line joins a hand to what it holds, a red one a seeker to a hider that it sees. Seekers are
    pale while they are frozen.

    Args:
        game: what to draw.
        env: which environment.
        floor: side of the floor.
        preparing: whether seekers are frozen.
    """
    walls = game.layouts[env].walls
    margin = MARGIN if any(wall.outer for wall in walls) else OPEN_MARGIN
    canvas = Canvas((-margin, -margin, floor + margin, floor + margin), PIXELS, _OUTSIDE)
    canvas.box(floor / 2, floor / 2, (floor / 2, floor / 2), 0.0, _FLOOR)
    _draw_cones(canvas, game, env, floor, preparing)
    for site, health in zip(game.meals.sites[env].tolist(), game.meals.health[env].tolist(), strict=True):
        canvas.disc(site[0], site[1], 0.1, _FOOD, 1.0 if health > 0 else 0.2)
    _draw_objects(canvas, game, env)
    for wall in walls:
        left, lower, right, upper = wall.rectangle()
        half = (right - left) / 2, (upper - lower) / 2
        color = _OUTER_WALL if wall.outer else _WALL
        canvas.box((left + right) / 2, (lower + upper) / 2, half, 0.0, color)
    _draw_agents(canvas, game, env, preparing)
    return canvas.picture()


def _color(is_hider: bool, preparing: bool) -> Color:
    if is_hider:
        return _HIDER
    return _FROZEN if preparing else _SEEKER


def _agents(game: Game, env: int) -> list[int]:
    slots: list[int] = np.flatnonzero(game.bodies.exists[env, : game.slots.agents]).tolist()
    return slots


def _draw_cones(canvas: Canvas, game: Game, env: int, floor: float, preparing: bool) -> None:
    bodies = game.bodies
    for slot in _agents(game, env):
        facing = float(bodies.positions[env, slot, 3]) + FACING
        angles = facing + np.linspace(-CONE, CONE, _SIGHT_RAYS)
        origin = bodies.centres[env, slot]
        reach = reach_of_sight(game.worlds[env], int(bodies.rows[env, slot]), origin, angles, 2.0 * floor)
        color = _color(bool(game.slots.is_hider[slot]), preparing)
        canvas.fan(float(origin[0]), float(origin[1]), facing, CONE, reach, color, 0.13)


def _draw_objects(canvas: Canvas, game: Game, env: int) -> None:
    """Boxes and ramps, the highest last."""
    bodies, slots = game.bodies, game.slots
    there = slots.agents + np.flatnonzero(bodies.exists[env, slots.agents :])
    for slot in there[np.argsort(bodies.positions[env, there, 2], kind="stable")].tolist():
        x, y, _ = bodies.centres[env, slot].tolist()
        angle, half = float(bodies.positions[env, slot, 3]), bodies.half_sizes[env, slot].tolist()
        thing = slot - slots.agents
        locked = bool(game.locks.locked[env, thing])
        frame = _color(bool(slots.is_hider[game.locks.owners[env, thing]]), False) if locked else _EDGE
        border = 0.05 if locked else 0.02
        canvas.box(x, y, (half[0], half[1]), angle, frame)
        inner = half[0] - border, half[1] - border
        if thing < slots.boxes:
            canvas.box(x, y, inner, angle, _BOX)
        else:
            canvas.slope(x, y, inner[0], angle, _RAMP_LOW, _RAMP_HIGH)
        if locked:
            _draw_cross(canvas, x, y, inner, angle, frame)


def _draw_cross(canvas: Canvas, x: float, y: float, half: tuple[float, float], angle: float, color: Color) -> None:
    cos, sin = math.cos(angle), math.sin(angle)
    for side in (1.0, -1.0):
        dx, dy = half[0] * cos - side * half[1] * sin, half[0] * sin + side * half[1] * cos
        canvas.line((x - dx, y - dy), (x + dx, y + dy), 0.03, color)


def _draw_agents(canvas: Canvas, game: Game, env: int, preparing: bool) -> None:
    bodies, slots = game.bodies, game.slots
    for slot in _agents(game, env):
        x, y, z = bodies.centres[env, slot].tolist()
        angle = float(bodies.positions[env, slot, 3])
        is_hider = bool(slots.is_hider[slot])
        color = _color(is_hider, preparing)
        cos, sin = math.cos(angle), math.sin(angle)
        # Those who stand on something look larger.
        size = 1.0 + 0.3 * max(0.0, z - AGENT_RADIUS)
        for arm_x, arm_y, _ in ARMS:
            canvas.disc(x + arm_x * cos - arm_y * sin, y + arm_x * sin + arm_y * cos, size * ARM_RADIUS, _EDGE)
        canvas.disc(x, y, size * AGENT_RADIUS, (255, 255, 255))
        canvas.disc(x, y, size * AGENT_RADIUS - 0.02, color)
        held = int(game.grabs.held[env, slot])
        if held != NOTHING:
            to = bodies.centres[env, slots.agents + held].tolist()
            canvas.line((x, y), (to[0], to[1]), 0.05, (20, 20, 20))
            canvas.disc(to[0], to[1], 0.06, (20, 20, 20))
        if not is_hider and not preparing:
            for other in np.flatnonzero(game.sees[env, slot, : slots.hiders]).tolist():
                seen = bodies.centres[env, other].tolist()
                canvas.line((x, y), (seen[0], seen[1]), 0.02, _SEEKER)
