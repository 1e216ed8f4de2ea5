from __future__ import annotations

import numpy as np
import pytest

from envs.hide_and_seek.grab import NOTHING, nearest_candidates, relative_pose
from tests.envs.hide_and_seek.scene import LOCK, PULL, Scene, facing

AWAY = (0, 5, 5, 1, 0)
"""To -x, pulling."""


def looking_at_a_cube(gap: float, **more: object) -> Scene:
    """A hider at the origin that faces a cube whose surface is `gap` from its centre."""
    scene = Scene(hiders=[(0.0, 0.0)], boxes=[(0.25 + gap, 0.0)], **more)  # type: ignore[arg-type]
    scene.put(0, angle=facing((0, 0), (1, 0)))
    return scene


def test_the_nearest_candidate_is_held() -> None:
    distances = np.array([[[0.1, 0.05, 0.2], [0.1, 0.05, 0.2], [0.1, 0.05, 0.2]]])
    candidates = np.array([[[True, True, True], [True, False, True], [False, False, False]]])
    assert nearest_candidates(distances, candidates).tolist() == [[1, 0, NOTHING]]


def test_relative_pose_is_in_the_agents_frame() -> None:
    agent, body = np.array([0.0, 0.0, 0.0, np.pi / 2]), np.array([0.0, 0.0, 0.0, np.pi / 2 + 1.0])
    position, quaternion = relative_pose(agent, np.array([1.0, 1.0, 0.0]), body, np.array([1.0, 3.0, 0.5]))
    np.testing.assert_allclose(position, [2.0, 0.0, 0.5], atol=1e-12)
    np.testing.assert_allclose(quaternion, [np.cos(0.5), 0.0, 0.0, np.sin(0.5)])


def test_a_pulled_cube_follows_and_keeps_its_pose() -> None:
    scene = looking_at_a_cube(0.20)
    scene.step(PULL)
    before, start = scene.at(2) - scene.at(0), scene.at(2)
    scene.step(AWAY, times=10)
    assert start[0] - scene.at(2)[0] > 2.5
    assert np.abs(scene.at(2) - scene.at(0) - before).max() < 0.01


def test_a_cube_behind_the_agent_is_not_grabbed() -> None:
    scene = looking_at_a_cube(0.20)
    scene.put(0, angle=facing((0, 0), (-1, 0)))
    start = scene.at(2)
    scene.step(AWAY, times=10)
    assert np.abs(scene.at(2) - start).max() < 0.01


@pytest.mark.parametrize(("gap", "is_held"), [(0.24, True), (0.27, False)])
def test_a_cube_is_grabbed_only_within_reach(gap: float, is_held: bool) -> None:
    scene = looking_at_a_cube(gap)
    scene.step(PULL)
    assert (scene.game.grabs.held[0, 0] == 0) == is_held


def test_what_was_not_seen_before_the_step_is_not_grabbed_though_it_is_seen_after() -> None:
    scene = looking_at_a_cube(0.20)
    scene.put(0, angle=facing((0, 0), (1, 0), off=1.3))
    scene.step((5, 5, 0, 1, 0))
    assert scene.sees(0, 2)
    assert scene.game.grabs.held[0, 0] == NOTHING
    scene.step(PULL)
    assert scene.game.grabs.held[0, 0] == 0


def test_letting_go_ends_the_hold() -> None:
    scene = looking_at_a_cube(0.20)
    scene.step(PULL)
    scene.step()
    start = scene.at(2)
    scene.step((0, 5, 5, 0, 0), times=5)
    assert np.abs(scene.at(2) - start).max() < 0.05
    assert not scene.game.worlds[0].data.eq_active.any()


def test_several_agents_hold_one_object() -> None:
    scene = Scene(hiders=[(0.0, 0.0)], seekers=[(0.9, 0.0)], boxes=[(0.45, 0.0)])
    scene.put(0, angle=facing((0, 0), (1, 0)))
    scene.put(1, angle=facing((1, 0), (0, 0)))
    scene.step(PULL, PULL)
    assert scene.game.grabs.held.tolist() == [[0, 0]]


def test_a_ramp_is_grabbed_by_its_place_not_by_the_meshs_axes() -> None:
    # The distance to the ramp's vertical face is 0.24; the mesh's principal half sizes would make it 0.14 or less.
    scene = Scene(hiders=[(0.0, -0.52)], ramps=[(0.0, 0.0)])
    scene.put(0, angle=facing((0, -1), (0, 0)))
    scene.step(PULL)
    assert scene.game.grabs.held[0, 0] == NOTHING
    scene.put(0, y=-0.49)
    scene.step(PULL)
    assert scene.game.grabs.held[0, 0] == 0


def test_a_locked_object_is_held_but_stays() -> None:
    scene = looking_at_a_cube(0.20)
    scene.step(LOCK)
    start = scene.at(2)
    scene.step((0, 5, 5, 1, 1), times=10)
    assert scene.game.grabs.held[0, 0] == 0
    assert np.abs(scene.at(2) - start).max() < 0.02


def test_a_hold_jumps_to_what_is_nearer_now() -> None:
    scene = Scene(hiders=[(0.0, 0.0)], boxes=[(0.45, 0.3), (0.48, -0.3)])
    scene.put(0, angle=facing((0, 0), (1, 0)))
    scene.step(PULL)
    assert scene.game.grabs.held[0, 0] == 0
    scene.put(3, x=0.42)
    scene.step(PULL)
    assert scene.game.grabs.held[0, 0] == 1


def test_an_agent_on_a_box_rides_it_only_while_it_holds_it() -> None:
    moved = {}
    for pull in (0, 1):
        scene = Scene(hiders=[(0.0, 0.0)], boxes=[(0.0, 0.0)])
        scene.put(0, z=0.65, x=0.0, y=0.05)
        scene.put(0, angle=0.0)
        scene.step((5, 5, 5, pull, 0))
        scene.step((5, 10, 5, pull, 0), times=10)
        moved[pull] = scene.at(2)[1]
    assert moved[1] > 2.5
    assert abs(moved[0]) < 0.3
