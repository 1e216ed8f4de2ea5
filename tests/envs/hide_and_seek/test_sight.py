"""Who sees whom: the vision cone and lines of sight."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from envs.hide_and_seek.geometry import in_cone
from envs.hide_and_seek.layout import ALONG_X, draw_layout
from envs.hide_and_seek.settings import Settings
from envs.hide_and_seek.walls import Wall
from tests.envs.hide_and_seek.scene import Point, Scene, facing

HIDER, SEEKER, THING = 0, 1, 2


def face_to_face(**more: object) -> Scene:
    """A hider at the origin that faces a seeker at distance 2."""
    scene = Scene(hiders=[(0.0, 0.0)], seekers=[(2.0, 0.0)], **more)  # type: ignore[arg-type]
    scene.put(HIDER, angle=facing((0, 0), (1, 0)))
    return scene


@pytest.mark.parametrize(("degrees", "is_inside"), [(0, True), (67, True), (-67, True), (68, False), (180, False)])
def test_cone_ends_at_67_degrees_and_a_half(degrees: float, is_inside: bool) -> None:
    # At angle 0 agents face -y.
    target = [np.sin(np.radians(degrees)), -np.cos(np.radians(degrees))]
    assert in_cone(np.zeros((1, 2)), np.zeros(1), np.array([target])).tolist() == [[is_inside]]


def test_no_distance_is_inside_the_cone_and_no_distance_is_too_far() -> None:
    assert in_cone(np.zeros((1, 2)), np.zeros(1), np.array([[0.0, 0.0], [0.0, -1e4]])).all()


def test_an_agent_sees_what_it_faces_and_not_what_is_behind() -> None:
    scene = Scene(hiders=[(0.0, 0.0)], seekers=[(1.0, 0.0)])
    scene.put(SEEKER, angle=facing((1, 0), (0, 0)))
    assert scene.sees(SEEKER, HIDER)
    scene.put(SEEKER, angle=facing((1, 0), (2, 0)))
    assert not scene.sees(SEEKER, HIDER)


@pytest.mark.parametrize(("degrees", "is_seen"), [(67, True), (68, False)])
def test_an_agent_sees_up_to_the_edge_of_its_cone(degrees: float, is_seen: bool) -> None:
    scene = face_to_face()
    scene.put(HIDER, angle=facing((0, 0), (1, 0), off=np.radians(degrees)))
    assert scene.sees(HIDER, SEEKER) == is_seen


def test_nobody_sees_itself() -> None:
    scene = Scene(hiders=[(0.0, 0.0)])
    assert not scene.sees(HIDER, HIDER)


@pytest.mark.parametrize("between", ["wall", "cube", "ramp", "agent"])
def test_sight_is_blocked_by_what_stands_between(between: str) -> None:
    far: Point = (1.0, 5.0)
    walls = [Wall(True, 4, -10, 10)]
    blocked = {
        "wall": lambda: face_to_face(walls=walls),
        "cube": lambda: face_to_face(boxes=[(1.0, 0.0)]),
        "ramp": lambda: face_to_face(ramps=[(1.0, 0.0)]),
        "agent": lambda: Scene(hiders=[(0.0, 0.0), (1.0, 0.0)], seekers=[(2.0, 0.0)]),
    }[between]()
    seeker = 2 if between == "agent" else SEEKER
    blocked.put(HIDER, angle=facing((0, 0), (1, 0)))
    assert not blocked.sees(HIDER, seeker)
    if between == "wall":
        blocked = face_to_face()
    else:
        blocked.put(1 if between == "agent" else THING, x=far[0], y=far[1])
    assert blocked.sees(HIDER, seeker)


def test_sight_goes_over_a_wall_from_a_height() -> None:
    scene = face_to_face(walls=[Wall(True, 4, -10, 10)])
    assert not scene.sees(HIDER, SEEKER)
    scene.put(HIDER, z=1.2)
    assert scene.sees(HIDER, SEEKER)


def test_objects_are_seen_where_nothing_hides_their_middle() -> None:
    scene = face_to_face(boxes=[(1.0, 0.0), (1.6, 0.0)])
    assert scene.sees(HIDER, THING)
    assert not scene.sees(HIDER, THING + 1)


def test_a_ramp_is_seen_by_the_middle_of_its_volume() -> None:
    # A low obstacle between hides the wedge's centroid, which is lower and farther back than the middle of its place.
    scene = Scene(hiders=[(0.0, -2.0)], ramps=[(0.0, 0.0)])
    expected = scene.at(THING)[:3] + [0.0, -0.25 / 3, -0.25 / 3]
    np.testing.assert_allclose(scene.game.bodies.aims[0, THING], expected, atol=1e-9)
    scene.put(THING, angle=np.pi / 2)
    expected = scene.at(THING)[:3] + [0.25 / 3, 0.0, -0.25 / 3]
    np.testing.assert_allclose(scene.game.bodies.aims[0, THING], expected, atol=1e-9)
    world = scene.game.worlds[0]
    np.testing.assert_allclose(world.data.geom_xpos[-1], expected, atol=1e-9)


def test_cone_goes_to_lower_corners_unless_told_otherwise() -> None:
    """An elongated box looks shifted by half its edges less those of an agent."""
    angle = facing((0, 0), (0, 1))
    for to_centres in (False, True):
        scene = Scene(hiders=[(0.0, 0.0)], boxes=[(0.9, 0.3)], sizes=[ALONG_X], cone_to_centres=to_centres)
        scene.put(HIDER, angle=angle)
        # The middle of the box is 72 degrees off, its shifted corner is at (0.225, 0.375) as seen by the agent.
        assert scene.sees(HIDER, THING) != to_centres


def test_lines_of_sight_agree_with_single_rays_in_random_worlds() -> None:
    settings = Settings(factory="hide_and_seek", hiders=(3, 3), seekers=(3, 3))
    random = np.random.default_rng(3)
    from envs.hide_and_seek.game import Game

    game = Game(settings, 1)
    compared = 0
    for _ in range(20):
        game.start(0, draw_layout(settings, 3, 3, random))
        game.bodies.positions[0, :6, 3] = random.uniform(-3, 3, 6)
        game.bodies.write(0, game.worlds[0])
        game.perceive()
        world, bodies = game.worlds[0], game.bodies
        for agent in range(6):
            for slot in np.flatnonzero(bodies.exists[0]).tolist():
                if slot == agent:
                    continue
                origin, geom = bodies.centres[0, agent], np.zeros(1, np.int32)
                body = int(world.body_ids[bodies.rows[0, agent]])
                mujoco.mj_ray(
                    world.model, world.data, origin, bodies.aims[0, slot] - origin, None, True, body, geom, None
                )
                hit = geom[0] >= 0 and world.geom_bodies[geom[0]] == bodies.rows[0, slot]
                corners = bodies.positions[0, :, :2]
                looks = in_cone(corners[[agent]], bodies.positions[0, [agent], 3], corners[[slot]])[0, 0]
                assert game.sees[0, agent, slot] == (hit and looks)
                compared += 1
    assert compared > 1000
