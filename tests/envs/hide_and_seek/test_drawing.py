from __future__ import annotations

import numpy as np

from envs.hide_and_seek import build
from envs.hide_and_seek.drawing import _BOX, _FOOD, _FROZEN, _HIDER, _SEEKER, OPEN_MARGIN, PIXELS
from envs.hide_and_seek.settings import Settings
from envs.hide_and_seek.walls import outer_walls
from tests.envs.hide_and_seek.scene import IDLE, LOCK, PULL, Scene, facing, settings_for


def at(picture: np.ndarray, x: float, y: float, margin: float = OPEN_MARGIN) -> tuple[int, ...]:
    scale = PIXELS / (6.0 + 2 * margin)
    return tuple(picture[int((6.0 + margin - y) * scale), int((x + margin) * scale)].tolist())


def drawn(scene: Scene) -> np.ndarray:
    picture = scene.environment.render()
    assert picture is not None
    return picture


def test_agents_boxes_and_walls_are_where_they_are() -> None:
    scene = Scene(hiders=[(1.0, 1.0)], seekers=[(5.0, 5.0)], boxes=[(3.0, 3.0)], walls=outer_walls(30))
    picture = drawn(scene)
    assert (picture.shape, picture.dtype) == ((PIXELS, PIXELS, 3), np.uint8)
    assert at(picture, 1.0, 1.0, 0.4) == _HIDER
    assert at(picture, 5.0, 5.0, 0.4) == _SEEKER
    assert at(picture, 3.0, 3.0, 0.4) == _BOX
    assert at(picture, 0.1, 3.0, 0.4) != at(picture, 0.5, 3.0, 0.4)


def test_vision_cones_end_at_what_blocks_them() -> None:
    open_view, blocked = Scene(hiders=[(3.0, 4.0)]), Scene(hiders=[(3.0, 4.0)], boxes=[(3.0, 3.0)])
    assert at(drawn(open_view), 3.0, 2.0) == at(drawn(open_view), 3.0, 3.3)
    assert at(drawn(blocked), 3.0, 3.5) == at(drawn(open_view), 3.0, 3.3)
    assert at(drawn(blocked), 3.0, 2.0) != at(drawn(open_view), 3.0, 2.0)


def test_locks_are_shown_in_the_colour_of_their_owner() -> None:
    scene = Scene(hiders=[(3.0, 3.0)], boxes=[(3.0, 2.55)])
    before = at(drawn(scene), 3.0, 2.55)
    scene.step(LOCK)
    assert before == _BOX
    assert at(drawn(scene), 3.0, 2.55) == _HIDER


def test_holds_are_shown() -> None:
    scene = Scene(hiders=[(3.0, 3.0)], boxes=[(3.0, 2.55)])
    scene.step(PULL)
    assert max(at(drawn(scene), 3.0, 2.55)) < 60
    scene.step(IDLE)
    assert at(drawn(scene), 3.0, 2.55) == _BOX


def test_a_seeker_that_sees_a_hider_is_shown() -> None:
    scene = Scene(hiders=[(3.0, 3.0)], seekers=[(5.0, 3.0)])
    scene.put(1, angle=facing((5, 3), (3, 3)))
    red = np.array(at(drawn(scene), 4.0, 3.0), int)
    assert red[0] > red[1] + 50


def test_nothing_is_drawn_unless_asked_for() -> None:
    environment = build(Settings(factory="hide_and_seek"), 1, 0)
    environment.reset(0)
    assert environment.render() is None
    assert environment.render_fps is not None
    assert round(environment.render_fps, 3) == 13.333


def test_food_ramps_and_frozen_seekers_are_shown() -> None:
    settings = settings_for(1, 1, 0, 1, food={"sites": 1}, prep_fraction=0.5)
    scene = Scene(hiders=[(1.0, 1.0)], seekers=[(5.0, 5.0)], ramps=[(3.0, 3.0)], food=[(1.0, 4.0)], settings=settings)
    picture = drawn(scene)
    assert at(picture, 1.0, 4.0) == _FOOD
    assert at(picture, 5.0, 5.0) == _FROZEN
    assert at(picture, 3.0, 3.15)[1] > at(picture, 3.0, 2.85)[1]
