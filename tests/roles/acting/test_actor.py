"""The turns of an actor's groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srlhpc.roles.acting.actor import Actor


class Slots:
    """Free slots that all groups share."""

    free = 0


class OneStepGroup:
    """A group that takes a slot for every step, which is over at once."""

    is_waiting = False

    lacks_match = False

    def __init__(self, number: int, slots: Slots) -> None:
        self.number, self._slots = number, slots
        self.steps = 0

    def ask(self) -> bool:
        if not self._slots.free:
            return False
        self._slots.free -= 1
        self.steps += 1
        return True

    def save_state(self) -> Mapping[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        assert state == {}


class Ring:
    """An actor with groups that share slots."""

    def __init__(self, groups: int) -> None:
        self._slots = Slots()
        self.groups = [OneStepGroup(4 + place, self._slots) for place in range(groups)]
        made: list[Any] = self.groups
        self.actor = Actor("actor-0", made, where="here", episode_summary=lambda *_: {})

    def poll_with_one_free_slot(self, times: int) -> list[int]:
        """Steps of the groups."""
        for _ in range(times):
            self._slots.free = 1
            self.actor.poll()
        return [group.steps for group in self.groups]


def test_scarce_slots_go_to_groups_in_turn() -> None:
    assert Ring(3).poll_with_one_free_slot(12) == [4, 4, 4]


def test_turns_go_on_in_an_actor_that_took_the_state() -> None:
    ring, restored = Ring(3), Ring(3)
    ring.poll_with_one_free_slot(1)
    restored.actor.load_state(ring.actor.save_state())
    assert restored.poll_with_one_free_slot(2) == [0, 1, 1]
