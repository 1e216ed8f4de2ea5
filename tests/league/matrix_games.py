"""Small games whose solutions are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROCK_PAPER_SCISSORS: NDArray[np.float64] = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
ROCK_COUNTS_TWICE: NDArray[np.float64] = np.array([[0.0, -1.0, 2.0], [1.0, 0.0, -1.0], [-2.0, 1.0, 0.0]])
"""Rock beats scissors twice."""
