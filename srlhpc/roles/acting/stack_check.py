"""Checks at the edge to the environment: observations that are declared as stacks of frames are such stacks.

Blocks hold their frames once (data/stacks.py), so a stack that is none would be rebuilt as something else.
"""

from __future__ import annotations

import numpy as np

from srlhpc.environment import Array, Kind, Stack, Step


class StackCheck:
    """Compares stacks with those of the record before: of one agent after the other, so that it costs little."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._row = 0
        self._before: dict[str, Array] = {}

    def begin(self, step: Step) -> None:
        """Takes in the first step of new episodes.

        Raises:
            ValueError: a stack does not begin as it is declared.
        """
        self._before = {}
        for row in range(step.kinds[self._kind.name].first.size):
            self._row = row
            self._compare(step)
        self._keep(step)

    def continues(self, step: Step) -> None:
        """Takes in the step that was current when the environment was saved."""
        self._keep(step)

    def __call__(self, step: Step) -> None:
        """Takes in the next step.

        Raises:
            ValueError: a stack is not what it is declared to be.
        """
        self._compare(step)
        self._row = (self._row + 1) % step.kinds[self._kind.name].first.size
        self._keep(step)

    def _compare(self, step: Step) -> None:
        now, place = step.kinds[self._kind.name], self._place(step)
        begins = bool(now.new_stacks[place])
        for key, stack in self._kind.stacks.items():
            older, newest = now.observations[key][place][:-1], now.observations[key][place][-1]
            expected = _beginning(stack, newest) if begins else self._before.get(key)
            if expected is not None and not np.array_equal(older, np.broadcast_to(expected, older.shape)):
                raise ValueError(self._fault(key, stack, place, begins=begins))

    def _place(self, step: Step) -> tuple[int, int]:
        env, agent = divmod(self._row, step.kinds[self._kind.name].first.shape[1])
        return env, agent

    def _keep(self, step: Step) -> None:
        observations, place = step.kinds[self._kind.name].observations, self._place(step)
        self._before = {key: observations[key][place][1:].copy() for key in self._kind.stacks}

    def _fault(self, key: str, stack: Stack, place: tuple[int, int], *, begins: bool) -> str:
        env, agent = place
        found = (
            f"begins anew, but its older frames are not {_FILLED[stack.filled_with]}"
            if begins
            else f"does not begin with the {stack.frames - 1} newest frames of the record before"
        )
        return (
            f"agent '{self._kind.agents[agent]}' of kind '{self._kind.name}' in environment {env}: observation '{key}' "
            f"is declared as a stack of {stack.frames} frames, the newest last, and {found}; correct the spaces "
            "(`Kind.stacks`), or set `stacks_begin` in the steps where stacks begin anew"
        )


def _beginning(stack: Stack, newest: Array) -> Array:
    return np.zeros_like(newest) if stack.filled_with == "zeros" else newest


_FILLED = {"zeros": "zeros", "newest": "its newest frame"}
