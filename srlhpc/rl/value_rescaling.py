"""A squashed scale of returns, in which values of very different sizes are learnt alike.

The functions use operators alone, so numpy arrays and tensors do alike; both should be float64: in float32 the
inverse loses a part in a thousand near 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

_A = TypeVar("_A", "Tensor", NDArray[np.float64])

EPSILON = 1e-3
"""Slope that h keeps for large returns, so that it has a Lipschitz continuous inverse."""


def rescale(x: _A) -> _A:
    """h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x (Pohlen et al. 2018, arXiv:1805.11593; Kapturowski et al. 2019).

    Args:
        x: returns, float64 of any shape.
    """
    root = (abs(x) + 1) ** 0.5 - 1
    return (x > 0) * root - (x < 0) * root + EPSILON * x


def unscale(y: _A) -> _A:
    """The inverse of `rescale`.

    h^-1(y) = sign(y) (((sqrt(1 + 4 epsilon (|y| + 1 + epsilon)) - 1) / (2 epsilon))^2 - 1).

    Args:
        y: rescaled returns, float64 of any shape.
    """
    root = ((1 + 4 * EPSILON * (abs(y) + 1 + EPSILON)) ** 0.5 - 1) / (2 * EPSILON)
    size = root**2 - 1
    return (y > 0) * size - (y < 0) * size
