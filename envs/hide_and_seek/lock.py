"""Locking: objects that a team has fixed where they are.

Letters: E environments, A agents, O objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.hide_and_seek.bodies import Bodies
from envs.hide_and_seek.world import World
from srlhpc.environment import BoolArray, SavedState

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Decision(NamedTuple):
    """What happens to the locks, each `[E, O]`."""

    locked: BoolArray
    """Whether the object is locked afterwards."""
    fresh: BoolArray
    """Whether it was free and is locked now, with a new owner."""
    freed: BoolArray
    """Whether it was locked and is free now."""


def decide(near: BoolArray, presses: BoolArray, locked: BoolArray, of_owners_team: BoolArray) -> Decision:
    """Locks with team-specific rights.

    Anybody near locks a free object by pressing, unless an agent near that does not press belongs to the team of its
    last owner; such an agent unlocks a locked one.

    Args:
        near: `[E, A, O]`, whether the agent saw the object and is close to it.
        presses: `[E, A]`.
        locked: `[E, O]`, before.
        of_owners_team: `[E, A, O]`, whether the agent is of the team of the object's last owner.
    """
    pressing = near & presses[:, :, None]
    unlock = (near & ~presses[:, :, None] & of_owners_team).any(axis=1)
    lock = pressing.any(axis=1) & ~unlock
    after = (locked & ~unlock) | lock
    return Decision(after, lock & ~locked, locked & ~after)


class Locks:
    """Locks of all objects.

    Attributes:
        locked: `[E, O]`.
        owners: `[E, O]`, slot of the agent that locked the object last; 0, a hider, if none did.
        anchors: `[E, O, 4]`, positions at which objects are locked.
    """

    def __init__(self, num_environments: int, bodies: Bodies, *, lock_ramps: bool) -> None:
        slots = bodies.slots
        self._bodies, self._first = bodies, slots.agents
        self._lockable: BoolArray = (np.arange(slots.objects) < slots.boxes) | lock_ramps
        self._is_hider = slots.is_hider
        self.locked: BoolArray = np.zeros((num_environments, slots.objects), np.bool_)
        self.owners: Ints = np.zeros((num_environments, slots.objects), np.int64)
        self.anchors: Floats = np.zeros((num_environments, slots.objects, 4))
        # Ramps are decided before boxes: it matters to what is drawn when.
        self._order = np.argsort(np.arange(slots.objects) < slots.boxes, kind="stable")

    def enter(self, env: int) -> None:
        """Forgets the locks of an environment that starts anew."""
        self.locked[env] = False
        self.owners[env] = 0
        self.anchors[env] = 0.0

    def update(
        self, worlds: Sequence[World], presses: BoolArray, near: BoolArray, randoms: Sequence[np.random.Generator]
    ) -> None:
        """Locks and unlocks what the agents press for.

        Args:
            worlds: E.
            presses: `[E, A]`.
            near: `[E, A, O]`, whether the agent saw the object and is close to it.
            randoms: E; draw the owner among all that press.
        """
        near = near & self._lockable
        decision = decide(near, presses, self.locked, self.is_owners_team())
        for env, thing in np.argwhere(decision.freed).tolist():
            worlds[env].unlock(int(self._bodies.rows[env, self._first + thing]))
        if decision.fresh.any():
            for env, place in np.argwhere(decision.fresh[:, self._order]).tolist():
                thing = int(self._order[place])
                pressing = np.flatnonzero(near[env, :, thing] & presses[env])
                self.owners[env, thing] = pressing[int(randoms[env].integers(len(pressing)))]
                self.anchors[env, thing] = self._bodies.positions[env, self._first + thing]
                self._fix(worlds[env], env, thing)
        self.locked = decision.locked

    def is_owners_team(self) -> BoolArray:
        """`[E, A, O]`: whether an agent is of the team of an object's last owner."""
        same: BoolArray = self._is_hider[None, :, None] == self._is_hider[self.owners][:, None, :]
        return same

    def _fix(self, world: World, env: int, thing: int) -> None:
        world.lock(int(self._bodies.rows[env, self._first + thing]), self.anchors[env, thing])

    def save_state(self) -> SavedState:
        return {"locked": self.locked.copy(), "owners": self.owners.copy(), "anchors": self.anchors.copy()}

    def load_state(self, state: SavedState, worlds: Sequence[World]) -> None:
        """Locks again what was locked; the worlds have no locks yet."""
        self.locked = state["locked"].copy()
        self.owners[:] = state["owners"]
        self.anchors[:] = state["anchors"]
        for env, thing in np.argwhere(self.locked).tolist():
            self._fix(worlds[env], env, thing)
