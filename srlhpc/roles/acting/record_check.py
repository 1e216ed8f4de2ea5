"""Checks at the edge to the environment: records that follow each other as the contract (environment.py) says.

Estimators rely on it: the successor of a valid record that ended nothing is the next record, and it is valid.
Letters: E environments, A agents of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from srlhpc.environment import BoolArray, Kind, KindStep, Step


class RecordCheck:
    """Compares every step of one kind with the one before."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._was_valid: BoolArray = np.zeros(0, np.bool_)

    def begin(self, step: Step) -> None:
        """Takes in the first step of new episodes.

        Raises:
            ValueError: a flag contradicts the contract.
        """
        self._was_valid = np.zeros_like(step.kinds[self._kind.name].valid)
        self(step)

    def continues(self, step: Step) -> None:
        """Takes in the step that was current when the environment was saved."""
        self._was_valid = step.kinds[self._kind.name].valid.copy()

    def __call__(self, step: Step) -> None:
        """Takes in the next step.

        Raises:
            ValueError: a flag contradicts the contract.
        """
        now, was = step.kinds[self._kind.name], self._was_valid
        ended = now.terminated | now.truncated
        # In arrays of bool, a > b is "a and not b". One look at all faults together: `any` is what takes time.
        wrong = (was > ended) | now.first
        wrong ^= now.valid
        wrong |= (ended | (now.rewards != 0)) > was
        wrong |= now.first & was
        wrong |= (now.valid | now.truncated) > now.alive
        wrong |= now.terminated & now.truncated
        if wrong.any():
            raise ValueError(self._fault(now, was, ended))
        np.copyto(was, now.valid)

    def _fault(self, now: KindStep, was: BoolArray, ended: BoolArray) -> str:
        for said, holds in _FAULTS.items():
            places = np.argwhere(holds(now, was, ended))
            if len(places):
                env, agent = places[0].tolist()
                return f"agent '{self._kind.agents[agent]}' of kind '{self._kind.name}' in environment {env} {said}"
        raise AssertionError("a contradiction that no fault names")


_Holds = Callable[[KindStep, BoolArray, BoolArray], BoolArray]

_FAULTS: Mapping[str, _Holds] = {
    "is valid but not alive": lambda now, _, __: now.valid & ~now.alive,
    "is truncated but no longer alive; keep it alive, not valid, for one record that shows its last observation, from "
    "which its value is estimated": lambda now, _, __: now.truncated & ~now.alive,
    "is terminated and truncated at once; set terminated alone": lambda now, _, __: now.terminated & now.truncated,
    "gets an end (terminated or truncated) for a record that was not valid": lambda _, was, ended: ended & ~was,
    "gets a reward for a record that was not valid": lambda now, was, _: (now.rewards != 0) & ~was,
    "is valid in the record after its end, which only shows the last observation; set valid to false there and begin "
    "anew, with first, in the record after it": lambda now, was, ended: was & ended & now.valid,
    "has first set in a record that is not valid": lambda now, _, __: now.first & ~now.valid,
    "has first set in the middle of its episode; end the episode (terminated or truncated) one record before, or leave "
    "first false": lambda now, was, _: now.first & was,
    "begins a valid record without first; set first in the first record of every episode": lambda now, was, _: (
        now.valid & ~now.first & ~was
    ),
    "left the game without an end; set terminated (it died) or truncated (it was cut) for its last record": (
        lambda now, was, ended: was & ~ended & ~now.alive
    ),
    "is not valid in the middle of its episode; a record is invalid only after an end and while the agent is not in "
    "the game. Who has no turn stays valid: let the action mask allow one choice, to do nothing; or declare turn_steps "
    "of its kind, and say who waits": (lambda now, was, ended: was & ~ended & ~now.valid),
}
"""What is wrong with an agent, and where that is so; the first that holds is said."""
