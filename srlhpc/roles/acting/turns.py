"""Follows whose turn it is: what an actor must know of agents that wait while others act.

It refuses steps that contradict the contract (environment.py), and keeps what an agent gets before its first turn of an
episode, which its first action has then. Letters: E environments, A agents of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from srlhpc.environment import Array, BoolArray, FloatArray, Kind, KindStep


@dataclass(frozen=True)
class _Before:
    """What is known of the record that the step ends, `[E, A]` each."""

    playing: BoolArray
    """In the game: acted or waited."""
    acted: BoolArray
    """Has had a turn in this episode."""


class Turns:
    """Compares every step of one kind with those before, and moves early rewards."""

    def __init__(self, kind: Kind, num_environments: int) -> None:
        self._kind = kind
        rows = (num_environments, len(kind.agents))
        self._playing: BoolArray = np.zeros(rows, np.bool_)
        self._acted: BoolArray = np.zeros(rows, np.bool_)
        self._early: FloatArray = np.zeros(rows, np.float32)

    def begin(self, step: KindStep) -> None:
        """Takes in the first step of new episodes.

        Raises:
            ValueError: a flag contradicts the contract.
        """
        for array in (self._playing, self._acted, self._early):
            array[:] = 0
        self.follow(step)

    def follow(self, step: KindStep) -> KindStep:
        """Takes in the next step.

        Returns:
            The step with rewards that a turn has earned or will: those before an agent's first turn come with it.

        Raises:
            ValueError: a flag contradicts the contract.
        """
        before = _Before(self._playing, self._acted)
        wrong = np.logical_or.reduce([holds(step, before) for holds in _FAULTS.values()])
        if wrong.any():
            raise ValueError(self._fault(step, before))
        rewards = np.where(self._acted, step.rewards + self._early, np.float32(0))
        assert step.waits is not None
        playing = step.valid | step.waits
        self._early = np.where(playing & ~self._acted, self._early + step.rewards, np.float32(0))
        self._acted = (self._acted | step.valid) & playing
        self._playing = playing
        return replace(step, rewards=rewards)

    def _fault(self, step: KindStep, before: _Before) -> str:
        for said, holds in _FAULTS.items():
            places = np.argwhere(holds(step, before))
            if len(places):
                env, agent = places[0].tolist()
                return f"agent '{self._kind.agents[agent]}' of kind '{self._kind.name}' in environment {env} {said}"
        raise AssertionError("a contradiction that no fault names")

    def save_state(self) -> dict[str, Array]:
        return {"playing": self._playing.copy(), "acted": self._acted.copy(), "early": self._early.copy()}

    def load_state(self, state: Mapping[str, Array]) -> None:
        self._playing[:], self._acted[:], self._early[:] = state["playing"], state["acted"], state["early"]


def _waits(step: KindStep) -> BoolArray:
    assert step.waits is not None
    return step.waits


def _ended(step: KindStep) -> BoolArray:
    return step.terminated | step.truncated


_FAULTS: Mapping[str, Callable[[KindStep, _Before], BoolArray]] = {
    "is valid and waits at once; who acts does not wait": lambda now, _: now.valid & _waits(now),
    "is valid or waits, but is not alive": lambda now, _: (now.valid | _waits(now)) & ~now.alive,
    "is truncated but no longer alive; keep it alive, neither valid nor waiting, for one record that shows its last "
    "observation, from which its value is estimated": lambda now, _: now.truncated & ~now.alive,
    "is terminated and truncated at once; set terminated alone": lambda now, _: now.terminated & now.truncated,
    "gets an end (terminated or truncated) for a record in which it was not in the game": lambda now, before: (
        _ended(now) & ~before.playing
    ),
    "gets a reward for a record in which it was not in the game": lambda now, before: (
        (now.rewards != 0) & ~before.playing
    ),
    "is valid or waits in the record after its end, which only shows the last observation; set both to false there": (
        lambda now, before: before.playing & _ended(now) & (now.valid | _waits(now))
    ),
    "left the game without an end; set terminated (it died) or truncated (it was cut) for its last record, or let it "
    "wait": lambda now, before: before.playing & ~_ended(now) & ~(now.valid | _waits(now)),
    "has first set in a record that is not valid; set it at its first turn": lambda now, _: now.first & ~now.valid,
    "has first set though it has had a turn in this episode": lambda now, before: (
        now.first & before.acted & before.playing
    ),
    "has its first turn of an episode without first; set first there": lambda now, before: (
        now.valid & ~now.first & ~before.acted
    ),
}
"""What is wrong with an agent, and where that is so; the first that holds is said."""
