"""What an episode's numbers show of the stages of play: how far objects were moved, what was locked.

Letters: E environments, O objects (boxes, then ramps).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from envs.hide_and_seek.bodies import Bodies
from srlhpc.environment import BoolArray, SavedState

Floats = NDArray[np.float64]

NAMES = ("max_box_move", "max_ramp_move", "num_box_lock", "num_ramp_lock")


class Statistics:
    """Movement and locks, at the end of preparation and of the episode."""

    def __init__(self, num_environments: int, bodies: Bodies) -> None:
        slots = bodies.slots
        self._bodies, self._boxes = bodies, slots.boxes
        self._objects = slice(slots.agents, slots.bodies)
        self._starts: Floats = np.zeros((num_environments, slots.objects, 3))
        self._in_preparation: Floats = np.zeros((num_environments, len(NAMES)))

    def enter(self, env: int) -> None:
        """Begins the episode of an environment from where its objects are."""
        self._starts[env] = self._bodies.positions[env, self._objects, :3]
        self._in_preparation[env] = 0.0

    def end_preparation(self, over: BoolArray, locked: BoolArray) -> None:
        """Keeps the numbers of environments `[E]` whose preparation is over.

        Args:
            over: `[E]`.
            locked: `[E, O]`.
        """
        for env in np.flatnonzero(over).tolist():
            self._in_preparation[env] = self._numbers(env, locked[env])

    def of(self, env: int, locked: BoolArray) -> dict[str, float]:
        """An episode's statistics at its last step: each number, and with `_prep` that of the preparation phase.

        Args:
            env: the environment that ended.
            locked: `[O]`, its locks.
        """
        now = dict(zip(NAMES, self._numbers(env, locked), strict=True))
        kept = zip(NAMES, self._in_preparation[env].tolist(), strict=True)
        return {**now, **{f"{name}_prep": value for name, value in kept}}

    def _numbers(self, env: int, locked: BoolArray) -> tuple[float, float, float, float]:
        moves = np.linalg.norm(self._bodies.positions[env, self._objects, :3] - self._starts[env], axis=-1)
        boxes, ramps = slice(self._boxes), slice(self._boxes, None)
        return (
            float(moves[boxes].max(initial=0.0)),
            float(moves[ramps].max(initial=0.0)),
            float(locked[boxes].sum()),
            float(locked[ramps].sum()),
        )

    def save_state(self) -> SavedState:
        return {"starts": self._starts.copy(), "in_preparation": self._in_preparation.copy()}

    def load_state(self, state: SavedState) -> None:
        self._starts[:] = state["starts"]
        self._in_preparation[:] = state["in_preparation"]
