"""How bodies move: the motors, friction and gravity."""

from __future__ import annotations

import numpy as np
import pytest

from envs.hide_and_seek.game import FORCES
from envs.hide_and_seek.layout import ALONG_X, ALONG_Y
from envs.hide_and_seek.settings import Settings
from envs.hide_and_seek.walls import Wall
from tests.envs.hide_and_seek.scene import FORWARD_X, IDLE, Scene, settings_for

TURN = (5, 5, 10, 0, 0)


def test_bins_are_forces_from_minus_to_plus_nine_tenths() -> None:
    np.testing.assert_allclose(FORCES, [-0.9 + 0.18 * k for k in range(11)], atol=1e-6)
    assert FORCES[5] == 0.0


def test_bins_of_every_agent_reach_its_own_motors() -> None:
    scene = Scene(hiders=[(1.0, 1.0), (3.0, 1.0)], seekers=[(5.0, 5.0)])
    scene.step((0, 5, 10, 0, 0), (5, 0, 5, 0, 0), (10, 10, 10, 0, 0))
    controls = scene.game.worlds[0].controls
    np.testing.assert_allclose(controls, [[-0.9, 0, 0.9], [0, -0.9, 0], [0.9, 0.9, 0.9]], atol=1e-6)


def test_full_force_moves_an_agent_from_rest_as_far_as_in_the_original() -> None:
    scene = Scene(hiders=[(0.0, 0.0)])
    scene.step(FORWARD_X)
    assert 0.15 <= scene.at(0)[0] <= 0.22
    fastest = 0.0
    for _ in range(9):
        scene.step(FORWARD_X)
        fastest = max(fastest, float(scene.game.bodies.velocities[0, 0, 0]))
    assert 4.8 <= scene.at(0)[0] <= 5.6
    assert fastest <= 8.5
    assert abs(scene.at(0)[1]) < 0.01
    assert abs(scene.at(0)[3]) < 0.01


def test_force_acts_along_the_worlds_axes_whatever_the_heading() -> None:
    scene = Scene(hiders=[(0.0, 0.0)])
    scene.put(0, angle=1.0)
    scene.step(FORWARD_X, times=5)
    assert scene.at(0)[0] > 1.0
    assert abs(scene.at(0)[1]) < 0.02


def test_full_torque_turns_and_stops_at_once() -> None:
    scene = Scene(hiders=[(0.0, 0.0)])
    scene.step(TURN, times=5)
    turned = scene.at(0)[3]
    assert 3.2 <= turned <= 3.5
    scene.step(IDLE, times=2)
    assert abs(scene.at(0)[3] - turned) < 0.02


def test_weakest_force_moves_an_agent_but_no_cube() -> None:
    alone, pushing = Scene(hiders=[(0.0, 0.0)]), Scene(hiders=[(0.0, 0.0)], boxes=[(0.41, 0.0)])
    for scene in (alone, pushing):
        scene.step((6, 5, 5, 0, 0), times=10)
    assert alone.at(0)[0] > 0.5
    assert pushing.at(2)[0] - 0.41 < 0.05


@pytest.mark.parametrize(("push", "least", "most"), [(7, 0.6, 1.2), (10, 3.0, 4.2)])
def test_stronger_forces_move_a_cube_as_far_as_in_the_original(push: int, least: float, most: float) -> None:
    scene = Scene(hiders=[(0.0, 0.0)], boxes=[(0.4, 0.0)])
    scene.step((push, 5, 5, 0, 0), times=10)
    assert least <= scene.at(2)[0] - 0.4 <= most


def test_everything_rests_on_the_floor() -> None:
    scene = Scene(
        hiders=[(1.0, 1.0)],
        boxes=[(3.0, 3.0), (3.0, 1.0), (1.0, 3.0)],
        sizes=[ALONG_X, ALONG_Y, (0.5, 0.5, 0.5)],
        ramps=[(5.0, 5.0)],
    )
    scene.step(times=10)
    assert np.abs(scene.game.bodies.positions[0, :, 2]).max() < 0.01
    heights = scene.game.bodies.centres[0, :, 2]
    np.testing.assert_allclose(heights, [0.15, 0.15, 0.25, 0.25, 0.25, 0.25], atol=0.01)


def test_nothing_tips_over() -> None:
    scene = Scene(hiders=[(0.0, 0.0)], boxes=[(0.4, 0.1)])
    scene.step(FORWARD_X, times=10)
    scene.game.worlds[0].update()
    up = scene.game.worlds[0].data.xmat[scene.game.worlds[0].body_ids][:, 8]
    np.testing.assert_allclose(up, 1.0)


@pytest.mark.parametrize("has_ramp", [True, False])
def test_an_agent_gets_over_an_inner_wall_only_by_a_ramp(has_ramp: bool) -> None:
    scene = Scene(hiders=[(3.0, 4.0)], ramps=[(3.0, 2.4)] if has_ramp else [], walls=[Wall(False, 10, 0, 29)])
    scene.step((5, 0, 5, 0, 0), times=15)
    assert (scene.at(0)[1] < 2.0) == has_ramp


@pytest.mark.parametrize(("kind", "least", "most"), [("quadrant", 1.5, 4.0), ("random_walls", 0.0, 0.6)])
def test_walls_are_slippery_in_the_quadrant_and_rough_in_random_walls(kind: str, least: float, most: float) -> None:
    scenario = {"kind": "quadrant", "boxes": [0, 0], "ramps": 0, "restrict": None, "horizon": 100}
    changes = {"scenario": scenario} if kind == "quadrant" else {}
    settings = (
        settings_for(1, 1, 0, 0)
        if not changes
        else Settings.model_validate(
            {"factory": "hide_and_seek", **changes, "hiders": [1, 1], "seekers": [1, 1], "prep_fraction": 0.0}
        )
    )
    scene = Scene(hiders=[(1.0, 1.91)], walls=[Wall(False, 10, 0, 29)], settings=settings)
    scene.step((10, 10, 5, 0, 0), times=5)
    assert least <= scene.at(0)[0] - 1.0 <= most
