"""A kitchen of Overcooked from above: the package's own pictures need a window."""

from __future__ import annotations

from typing import Any

from envs._canvas import Canvas, Color
from srlhpc.environment import Array

PIXELS = 48
"""Width and height of a cell."""
_FLOOR: Color = (228, 218, 202)
_COUNTER: Color = (158, 116, 74)
_EDGE: Color = (120, 86, 52)
_ONION: Color = (240, 200, 60)
_TOMATO: Color = (214, 60, 44)
_DISH: Color = (250, 250, 250)
_SERVING: Color = (120, 170, 110)
_POT: Color = (58, 58, 62)
_SOUP: Color = (236, 150, 50)
_DONE: Color = (90, 200, 90)
_COOKS: tuple[Color, ...] = ((40, 110, 200), (40, 150, 90))
_NOSE: Color = (30, 30, 30)
_COLORS = {"onion": _ONION, "tomato": _TOMATO, "dish": _DISH}
_DISPENSED = {"O": _ONION, "T": _TOMATO, "D": _DISH}


def draw(world: Any, state: Any) -> Array:
    """uint8 `[H × PIXELS, W × PIXELS, 3]`.

    Dispensers show what they give, serving places are green, pots dark. A dot is an ingredient, a bar beside a pot how
    long its soup has cooked, green when it is done. The dark spot of a cook is where it faces.

    Args:
        world: the package's `OvercookedGridworld`.
        state: its `OvercookedState`.
    """
    canvas = Canvas((0.0, 0.0, world.width, world.height), PIXELS * world.width, _FLOOR)
    for tile, places in world.terrain_pos_dict.items():
        for x, y in places:
            _draw_tile(canvas, tile, *_middle(world, (x, y)))
    for thing in state.objects.values():
        _draw_thing(canvas, thing, *_middle(world, thing.position), size=0.28)
        if thing.name == "soup" and not thing.is_idle:
            _draw_bar(canvas, thing, *_middle(world, thing.position))
    for player, color in zip(state.players, _COOKS, strict=True):
        x, y = _middle(world, player.position)
        canvas.disc(x, y, 0.38, color)
        across, down = player.orientation
        canvas.disc(x + 0.3 * across, y - 0.3 * down, 0.09, _NOSE)
        if player.held_object is not None:
            _draw_thing(canvas, player.held_object, x, y, size=0.2)
    return canvas.picture()


def _middle(world: Any, place: tuple[int, int]) -> tuple[float, float]:
    """Middle of a cell; rows are counted from above, the canvas from below."""
    return place[0] + 0.5, world.height - place[1] - 0.5


def _draw_tile(canvas: Canvas, tile: str, x: float, y: float) -> None:
    if tile == " ":
        return
    canvas.box(x, y, (0.5, 0.5), 0.0, _EDGE)
    canvas.box(x, y, (0.46, 0.46), 0.0, _SERVING if tile == "S" else _COUNTER)
    if tile == "P":
        canvas.disc(x, y, 0.4, _POT)
    elif tile in _DISPENSED:
        for place in (-0.2, 0.0, 0.2):
            canvas.disc(x + place, y - abs(place), 0.15, _DISPENSED[tile])


def _draw_thing(canvas: Canvas, thing: Any, x: float, y: float, *, size: float) -> None:
    if thing.name != "soup":
        canvas.disc(x, y, size * 0.8, _COLORS[thing.name])
        return
    canvas.disc(x, y, size, _DISH if thing.is_ready else _POT)
    canvas.disc(x, y, size * 0.8, _POT if thing.is_idle else _SOUP)
    for place, ingredient in enumerate(thing.ingredients):
        canvas.disc(x + (place - 1) * size * 0.5, y, size * 0.25, _COLORS[ingredient])


def _draw_bar(canvas: Canvas, soup: Any, x: float, y: float) -> None:
    part = 1.0 - soup.cook_time_remaining / soup.cook_time
    canvas.box(x, y - 0.42, (0.4, 0.05), 0.0, _NOSE)
    canvas.box(x - 0.4 * (1 - part), y - 0.42, (0.4 * part, 0.04), 0.0, _DONE if soup.is_ready else _SOUP)
