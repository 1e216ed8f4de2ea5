from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from srlhpc.environment import Array, Environment, KindStep, Step
from srlhpc.roles.acting.record_check import RecordCheck
from tests.roles.playing import Play
from tests.scripted import Script, Scripted

AGENTS = ("a", "b")
SCRIPTS = [
    [Script(4, "terminated", {"b": ((0, 1), (2, 3))}), Script(2, "truncated")],
    [Script(1, "truncated"), Script(6, "terminated", {"a": ((1, 5),)})],
]
NO_TURN = "is not valid in the middle of its episode"


def steps_of(environment: Environment, number: int) -> list[KindStep]:
    """What the environment shows, copied."""
    step, kept = environment.reset(0), []
    for _ in range(number):
        now = step.kinds["agent"]
        flags = {name: array.copy() for name, array in vars(now).items() if isinstance(array, np.ndarray)}
        kept.append(replace(now, **flags))
        step = environment.step({"agent": np.zeros((2, 2), np.int64)})
    return kept


def check_all(steps: list[KindStep]) -> None:
    check = RecordCheck(Scripted(SCRIPTS, {"agent": AGENTS}).spaces.kinds[0])
    check.begin(Step({"agent": steps[0]}))
    for step in steps[1:]:
        check(Step({"agent": step}))


def test_deaths_births_and_ends_pass() -> None:
    check_all(steps_of(Scripted(SCRIPTS, {"agent": AGENTS}), 40))


def test_step_that_a_state_was_saved_at_is_taken_as_it_is() -> None:
    steps = steps_of(Scripted(SCRIPTS, {"agent": AGENTS}), 40)
    check = RecordCheck(Scripted(SCRIPTS, {"agent": AGENTS}).spaces.kinds[0])
    for begin in range(len(steps)):
        check.continues(Step({"agent": steps[begin]}))
        for step in steps[begin + 1 :]:
            check(Step({"agent": step}))


def changed(**changes: tuple[int, tuple[int, int], bool | float]) -> list[KindStep]:
    """Steps of an agent `a` and an agent `b` in two environments; in environment 0, `b` dies after record 0, and is
    back at 2."""
    steps = steps_of(Scripted(SCRIPTS, {"agent": AGENTS}), 12)
    for name, (time, place, value) in changes.items():
        getattr(steps[time], name)[place] = value
    return steps


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"valid": (2, (0, 0), False)}, f"agent 'a' of kind 'agent' in environment 0 {NO_TURN}"),
        ({"valid": (3, (0, 0), False), "terminated": (4, (0, 0), False)}, NO_TURN),
        ({"valid": (2, (0, 0), False), "alive": (2, (0, 0), False)}, "left the game without an end"),
        ({"terminated": (1, (0, 1), False)}, "agent 'b' of kind 'agent' in environment 0 left the game without an end"),
        ({"terminated": (1, (0, 0), True)}, "is valid in the record after its end"),
        ({"terminated": (2, (0, 1), True)}, "gets an end (terminated or truncated) for a record that was not valid"),
        ({"truncated": (2, (0, 1), True)}, "gets an end (terminated or truncated) for a record that was not valid"),
        (
            {"rewards": (2, (0, 1), 1.0)},
            "agent 'b' of kind 'agent' in environment 0 gets a reward for a record that was not",
        ),
        ({"first": (1, (0, 0), True)}, "has first set in the middle of its episode"),
        ({"first": (0, (0, 0), False)}, "begins a valid record without first"),
        ({"first": (2, (0, 1), False)}, "begins a valid record without first"),
        ({"first": (1, (0, 1), True)}, "has first set in a record that is not valid"),
        ({"alive": (1, (0, 0), False)}, "is valid but not alive"),
        (
            {"terminated": (1, (0, 1), False), "truncated": (1, (0, 1), True)},
            "is truncated but no longer alive; keep it",
        ),
        ({"truncated": (4, (0, 0), True)}, "is terminated and truncated at once"),
    ],
)
def test_contradictions_are_named(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match="environment 0") as caught:
        check_all(changed(**changes))
    assert fault in str(caught.value)


class TakingTurns(Scripted):
    """Two agents, one of which is invalid while it is the other's turn."""

    def __init__(self) -> None:
        super().__init__([[Script(9)]], {"agent": AGENTS})

    def step(self, actions: Mapping[str, Array]) -> Step:
        step = super().step(actions)
        step.kinds["agent"].valid[:, int(self._time[0]) % 2] = False
        return step


def test_actor_refuses_agents_without_a_turn_and_says_what_to_do() -> None:
    play = Play(TakingTurns(), default={"kind": "agent", "agents": (0, 1)})
    with pytest.raises(Exception, match="let the action mask allow one choice") as caught:
        play.run(3)
    assert NO_TURN in str(caught.value)
