"""Simulators of Crafter whose games follow from a seed.

The package keeps the creatures of each part of a world in a set and draws one by its place in it, so a game depends on
where objects happen to lie in memory. Here they are kept in the order in which they came.
"""

from __future__ import annotations

import collections
from typing import Any

ACHIEVEMENTS = (
    "collect_coal",
    "collect_diamond",
    "collect_drink",
    "collect_iron",
    "collect_sapling",
    "collect_stone",
    "collect_wood",
    "defeat_skeleton",
    "defeat_zombie",
    "eat_cow",
    "eat_plant",
    "make_iron_pickaxe",
    "make_iron_sword",
    "make_stone_pickaxe",
    "make_stone_sword",
    "make_wood_pickaxe",
    "make_wood_sword",
    "place_furnace",
    "place_plant",
    "place_stone",
    "place_table",
    "wake_up",
)
ACTIONS = 17


class _InOrder(dict[Any, None]):
    """A set that is walked through in the order in which its members came."""

    def add(self, member: Any) -> None:
        self[member] = None

    def remove(self, member: Any) -> None:
        del self[member]


def simulator(area: tuple[int, int], pixels: int, max_steps: int) -> Any:
    """A `crafter.Env`, not reset yet."""
    import crafter
    from crafter.engine import World

    class OrderedWorld(World):  # type: ignore[misc]
        def reset(self, seed: int | None = None) -> None:
            super().reset(seed)
            self._chunks: dict[Any, _InOrder] = collections.defaultdict(_InOrder)

    made = crafter.Env(area=area, size=(pixels, pixels), length=max_steps, seed=0)
    made._world.__class__ = OrderedWorld
    return made


def seed(simulator: Any, seed: int) -> None:
    """Lets the next episode, and those after it, follow from `seed`, as in one that was made with it."""
    simulator._seed, simulator._episode = seed, 0
