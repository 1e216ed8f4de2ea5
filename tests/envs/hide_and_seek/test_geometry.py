from __future__ import annotations

import numpy as np

from envs.hide_and_seek.geometry import distance_to_cuboids, wrapped


def distance(point: tuple[float, float, float], angle: float = 0.0) -> float:
    """To a cuboid at the origin with half sizes 2, 1, 0.5."""
    half = np.array([[[2.0, 1.0, 0.5]]])
    return float(distance_to_cuboids(np.array([[point]]), np.zeros((1, 1, 3)), np.array([[angle]]), half)[0, 0, 0])


def test_distance_to_a_cuboid_is_to_its_surface() -> None:
    assert distance((3.0, 0.0, 0.0)) == 1.0
    assert distance((0.0, -4.0, 0.0)) == 3.0
    assert distance((0.0, 0.0, 0.75)) == 0.25
    assert distance((5.0, 5.0, 0.0)) == 5.0
    assert distance((1.0, 0.5, 0.25)) == 0.0


def test_distance_to_a_turned_cuboid_is_in_its_frame() -> None:
    assert np.isclose(distance((0.0, 3.0, 0.0), angle=np.pi / 2), 1.0)
    assert np.isclose(distance((4.0, 0.0, 0.0), angle=-np.pi / 2), 3.0)


def test_wrapped_angles_are_within_minus_pi_and_pi() -> None:
    np.testing.assert_allclose(
        wrapped(np.array([0.0, np.pi, -np.pi, 7.0, -4.0])), [0, -np.pi, -np.pi, 7 - 2 * np.pi, 2 * np.pi - 4]
    )
