"""Distances and directions on the floor. Letters: E environments, A agents, T targets; any leading axes in place of
E."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from srlhpc.environment import BoolArray

Floats = NDArray[np.float64]

CONE = 3 / 8 * math.pi
"""Half the angle of the vision cone."""
FACING = -math.pi / 2
"""Direction that agents face at angle 0."""
_COS_CONE = math.cos(CONE)


def in_cone(origins: Floats, angles: Floats, targets: Floats) -> BoolArray:
    """Whether targets are within the vision cone, which has no limit of range.

    Args:
        origins: `[E, A, 2]`.
        angles: `[E, A]`, hinge angles of the agents.
        targets: `[E, T, 2]`.

    Returns:
        `[E, A, T]`; a target at no distance is inside.
    """
    x = targets[..., None, :, 0] - origins[..., :, None, 0]
    y = targets[..., None, :, 1] - origins[..., :, None, 1]
    # The agent faces angle - pi / 2, that is (sin angle, -cos angle).
    ahead = x * np.sin(angles)[..., None] - y * np.cos(angles)[..., None]
    inside: BoolArray = ahead >= _COS_CONE * np.sqrt(x * x + y * y)
    return inside


def distance_to_cuboids(points: Floats, centres: Floats, angles: Floats, half_sizes: Floats) -> Floats:
    """Distance from points to the surfaces of cuboids that stand upright; 0 inside.

    Args:
        points: `[E, A, 3]`.
        centres: `[E, T, 3]`.
        angles: `[E, T]`, rotation about the vertical.
        half_sizes: `[E, T, 3]`.

    Returns:
        `[E, A, T]`.
    """
    x = points[..., :, None, 0] - centres[..., None, :, 0]
    y = points[..., :, None, 1] - centres[..., None, :, 1]
    z = points[..., :, None, 2] - centres[..., None, :, 2]
    cos, sin = np.cos(angles)[..., None, :], np.sin(angles)[..., None, :]
    half = half_sizes[..., None, :, :]
    along = np.maximum(np.abs(x * cos + y * sin) - half[..., 0], 0.0)
    across = np.maximum(np.abs(y * cos - x * sin) - half[..., 1], 0.0)
    above = np.maximum(np.abs(z) - half[..., 2], 0.0)
    distance: Floats = np.sqrt(along * along + across * across + above * above)
    return distance


def wrapped(angles: Floats) -> Floats:
    """The same angles within [-pi, pi)."""
    return (angles + math.pi) % (2 * math.pi) - math.pi
