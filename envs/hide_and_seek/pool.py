"""Worlds kept for the next layout of their structure: compiling one takes as long as several steps."""

from __future__ import annotations

from envs.hide_and_seek.model import Structure
from envs.hide_and_seek.world import World

IDLE_WORLDS = 64
"""Worlds that are kept at most, about 1 MB each. The quadrant has one structure; random walls have 168 for each
number of agents, and their episodes are so long that compiling a world for each costs less than 1 % of the time."""


class WorldPool:
    """Hands out worlds and takes them back.

    A world that is used again behaves, bit for bit, as one that was compiled anew: which it is makes no difference to
    what is drawn or simulated.

    Args:
        limit: idle worlds that are kept; beyond, those that have been idle for longest go.
    """

    def __init__(self, limit: int = IDLE_WORLDS) -> None:
        self._limit = limit
        self._idle: list[World] = []
        self.compiled = 0
        """Worlds compiled so far."""

    def take(self, structure: Structure) -> World:
        """A world of a structure; give it a layout before use."""
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index].structure == structure:
                return self._idle.pop(index)
        self.compiled += 1
        return World(structure)

    def give_back(self, world: World) -> None:
        """Keeps a world that is no longer used."""
        self._idle.append(world)
        del self._idle[: -self._limit]


SHARED = WorldPool()
"""The pool of all environments of this process: an actor has a ring of them."""
