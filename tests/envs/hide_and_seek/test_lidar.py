from __future__ import annotations

import numpy as np
import pytest

from envs.hide_and_seek.walls import Wall, outer_walls
from tests.envs.hide_and_seek.scene import Scene


def test_lidar_measures_to_the_outer_walls() -> None:
    scene = Scene(hiders=[(1.0, 1.0)], walls=outer_walls(30))
    lidar = scene.seen("lidar")[0, 0]
    assert lidar[0] == pytest.approx(4.85, abs=1e-3)
    assert lidar[15] == pytest.approx(0.85, abs=1e-3)


def test_lidar_is_six_where_nothing_is_hit() -> None:
    scene = Scene(hiders=[(0.0, 0.0)])
    assert (scene.seen("lidar")[0] == 6.0).all()


def test_hits_beyond_six_are_given_as_they_are() -> None:
    scene = Scene(hiders=[(0.0, 0.1)], walls=[Wall(True, 40, -10, 10)])
    assert scene.seen("lidar")[0, 0, 0] == pytest.approx(8.05, abs=1e-3)


def test_lidar_turns_counter_clockwise_from_the_worlds_x_axis_whatever_the_heading() -> None:
    scene = Scene(hiders=[(0.0, 0.0)], boxes=[(0.0, 1.25)], lidar_rays=4)
    for angle in (0.0, 1.0):
        scene.put(0, angle=angle)
        np.testing.assert_allclose(scene.seen("lidar")[0, 0], [6.0, 1.0, 6.0, 6.0], atol=1e-6)


def test_lidar_hits_agents_and_their_arms_but_not_its_own() -> None:
    scene = Scene(hiders=[(0.0, 0.0)], seekers=[(0.0, -1.0)], lidar_rays=4)
    np.testing.assert_allclose(scene.seen("lidar")[:, 0], [[6, 6, 6, 0.85], [6, 0.85, 6, 6]], atol=1e-6)


def test_lidar_passes_over_what_is_lower() -> None:
    scene = Scene(hiders=[(0.0, 0.0)], boxes=[(0.0, 1.25)], lidar_rays=4)
    scene.put(0, z=0.7)
    assert (scene.seen("lidar")[0] == 6.0).all()
