"""Observations that are declared as stacks of frames are compared with those of the record before."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import pytest

from srlhpc.doctor.random_play import keep
from srlhpc.environment import Step
from srlhpc.roles.acting.actor import StepError
from srlhpc.roles.acting.stack_check import StackCheck
from tests.roles.playing import Play
from tests.scripted import Script, Scripted
from tests.stacked import Stacked

AGENTS = ("a", "b")
SCRIPTS = [
    [Script(4, "terminated", {"b": ((0, 1), (2, 3))}), Script(2, "truncated")],
    [Script(1, "truncated"), Script(6, "terminated", {"a": ((1, 5),)})],
]
ROWS = 4
"""Agents of all environments: each is compared in every so manyth step."""
Filling = Literal["zeros", "newest"]


def stacked(filled_with: Filling = "zeros", every: int = 1) -> Stacked:
    return Stacked(Scripted(SCRIPTS, {"agent": AGENTS}), 3, filled_with, every=every)


def steps_of(environment: Stacked, number: int) -> list[Step]:
    """What the environment shows, copied."""
    seen = [keep(environment.reset(0))]
    for _ in range(number - 1):
        seen.append(keep(environment.step({"agent": np.zeros((2, 2), np.int64)})))
    return [Step(step.kinds) for step in seen]


def check_all(environment: Stacked, steps: list[Step]) -> None:
    check = StackCheck(environment.spaces.kinds[0])
    check.begin(steps[0])
    for step in steps[1:]:
        check(step)


@pytest.mark.parametrize("filled_with", ["zeros", "newest"])
@pytest.mark.parametrize("every", [1, 2])
def test_stacks_pass_over_deaths_births_and_ends(filled_with: Filling, every: int) -> None:
    environment = stacked(filled_with, every)
    check_all(environment, steps_of(environment, 40))


def test_step_that_a_state_was_saved_at_is_taken_as_it_is() -> None:
    steps = steps_of(stacked(), 40)
    check = StackCheck(stacked().spaces.kinds[0])
    for begin in range(len(steps)):
        check.continues(steps[begin])
        for step in steps[begin + 1 :]:
            check(step)


def refused(environment: Stacked, steps: list[Step], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        check_all(environment, steps)
    assert str(caught.value).endswith(
        "; correct the spaces (`Kind.stacks`), or set `stacks_begin` in the steps where stacks begin anew"
    )


@pytest.mark.parametrize("env", [0, 1])
@pytest.mark.parametrize("agent", [0, 1])
def test_stack_that_shuffles_frames_is_refused_by_the_name_of_its_agent(env: int, agent: int) -> None:
    environment = stacked()
    steps = steps_of(environment, 1 + 4 * ROWS)
    for step in steps[1:]:
        # The reverse of what it should be: the newest first.
        stacks = step.kinds["agent"].observations["obs"]
        stacks[env, agent] = stacks[env, agent, ::-1].copy()
    where = (
        f"agent '{AGENTS[agent]}' of kind 'agent' in environment {env}: observation 'obs' is declared as a stack of 3"
    )
    refused(environment, steps, where)


def test_stack_that_does_not_go_on_with_the_frames_before_is_refused() -> None:
    environment = stacked()
    steps = steps_of(environment, 3)
    # The last agent is the first that is compared after a beginning, for which all are.
    steps[1].kinds["agent"].observations["obs"][1, 1, 0] += 1
    refused(
        environment, steps, "the newest last, and does not begin with the 2 newest frames of the record before; correct"
    )


@pytest.mark.parametrize(
    ("filled_with", "filling"), [("zeros", "newest"), ("newest", "zeros")], ids=["for zeros", "for the newest"]
)
def test_beginning_that_is_filled_with_something_else_is_refused(filled_with: Filling, filling: Filling) -> None:
    words = {"zeros": "zeros", "newest": "its newest frame"}[filled_with]
    refused(
        stacked(filled_with),
        steps_of(stacked(filling), 1),
        f"the newest last, and begins anew, but its older frames are not {words}; correct",
    )


def test_stack_that_goes_on_where_it_should_begin_is_refused() -> None:
    steps = steps_of(stacked(every=2), 30)
    for step in steps:
        step.kinds["agent"].stacks_begin = None
    refused(stacked(), steps, "begins anew, but its older frames are not zeros")


def test_actor_refuses_an_environment_whose_stacks_are_none() -> None:
    environment = stacked("newest")
    environment.spaces = stacked("zeros").spaces
    with pytest.raises(StepError, match="its older frames are not zeros; correct the spaces"):
        Play(environment, default={"agents": (0, 1)})
