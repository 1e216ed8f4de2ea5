"""How the ranks of a node share its GPUs. Pure; the planner counts by it, and the ranks choose by it."""

from __future__ import annotations

import math
from collections.abc import Sequence

# Shares such as 0.1 do not add up to whole numbers exactly.
_ROUNDING = 1e-9


def gpu_places(shares: Sequence[float]) -> list[range]:
    """The GPUs of each rank of a node, as places in what the node is granted.

    Ranks take GPUs in order. Whole GPUs are a rank's own; ranks with parts share one as long as it has room.

    Args:
        shares: GPUs of each rank, by local rank; 0.5: half of one.
    """
    places, taken = [], 0.0
    for share in shares:
        # What is free on the GPU that was begun last.
        room = math.ceil(taken - _ROUNDING) - taken
        if share and (share >= 1 or share > room + _ROUNDING):
            taken = float(math.ceil(taken - _ROUNDING))
        first = math.floor(taken + _ROUNDING)
        taken += share if share < 1 else math.ceil(share - _ROUNDING)
        places.append(range(first, math.ceil(taken - _ROUNDING)) if share else range(0))
    return places


def gpus_of_node(shares: Sequence[float]) -> int:
    """GPUs that the ranks of one node need."""
    return max((places.stop for places in gpu_places(shares)), default=0)
