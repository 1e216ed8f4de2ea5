"""Which agents play together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from srlhpc.arena.sides import are_alike, same_agents, two_sides
from srlhpc.environment import ArraySpec, Discrete, Kind, Spaces
from srlhpc.errors import UserError
from srlhpc.plan.plan import Plan
from srlhpc.plan.planner import make_plan
from srlhpc.specs.experiment import ExperimentSpec
from tests.arena.players import RPS, job_of

TAG = {"adversary": ("adversary_0", "adversary_1", "adversary_2"), "agent": ("agent_0",)}
HUNTERS_AND_PREY: list[dict[str, Any]] = [
    {"match": "adversary_.*", "policy": "hunters"},
    {"match": ".*", "policy": "prey"},
]


def plan_of(kinds: Mapping[str, Sequence[str]], entries: Sequence[Mapping[str, Any]] = ()) -> Plan:
    observations = {"obs": ArraySpec((1,), "float32")}
    spaces = Spaces(tuple(Kind(name, tuple(agents), observations, Discrete(3)) for name, agents in kinds.items()))
    job = job_of(RPS, agents=list(entries)) if entries else job_of(RPS)
    return make_plan(ExperimentSpec.model_validate(job), spaces)


def sides(plan: Plan, *patterns: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(side.name, side.agents) for side in two_sides(plan, patterns, "mine")]


def test_entry_of_agents_is_a_side_with_the_name_of_its_policy() -> None:
    assert sides(plan_of(TAG, HUNTERS_AND_PREY)) == [("hunters", TAG["adversary"]), ("prey", TAG["agent"])]


def test_agents_of_the_only_entry_are_sides_by_name() -> None:
    assert sides(plan_of({"agent": ("a", "b")})) == [("a", ("a",)), ("b", ("b",))]


def test_entries_of_one_policy_are_called_after_their_agents() -> None:
    teams = {"player": ("red_0", "red_1", "blue_0")}
    entries = [{"match": "red_.*", "policy": "all"}, {"match": "blue_.*", "policy": "all"}]
    plan = plan_of(teams, entries)
    assert sides(plan) == [("red_.*", ("red_0", "red_1")), ("blue_0", ("blue_0",))]


def test_entry_without_agents_is_no_side() -> None:
    entries = [{"match": "a", "policy": "x"}, {"match": "b", "policy": "x"}, {"match": "c", "policy": "x"}]
    assert [name for name, _ in sides(plan_of({"agent": ("a", "b")}, entries))] == ["a", "b"]


def test_patterns_are_the_sides_whatever_the_entries_say() -> None:
    teams = {"player": ("red_0", "red_1", "blue_0", "blue_1")}
    assert sides(plan_of(teams), "red.*", ".*") == [("red.*", ("red_0", "red_1")), (".*", ("blue_0", "blue_1"))]


def test_environment_with_one_agent_is_refused() -> None:
    with pytest.raises(UserError, match="mine: its environment has one agent, 'alone', .*: srlhpc eval RUN"):
        two_sides(plan_of({"agent": ("alone",)}), (), "mine")


def test_more_than_two_sides_are_refused_with_patterns_to_give() -> None:
    message = r"mine: 3 sides \(a_0, b, c\), .* for example --side 'a_0' --side '\.\*' \(agents: a_0, b, c\)"
    with pytest.raises(UserError, match=message):
        two_sides(plan_of({"agent": ("a_0", "b", "c")}), (), "mine")
    with pytest.raises(UserError, match=r"mine: 1 sides? \(\.\*\), "):
        two_sides(plan_of({"agent": ("a", "b")}), [".*"], "mine")


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (("a", "x"), "--side 'x' matches no agent that no --side before it matches; the agents are a, b"),
        (("a", "a"), "--side 'a' matches no agent that no --side before"),
        (("a",), "no --side matches agent 'b'; every agent plays on one: the agents are a, b"),
        (("a", "("), r"--side: '\(' is no regular expression: .*; correct it"),
    ],
)
def test_patterns_that_do_not_share_the_agents_out_are_refused(patterns: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        two_sides(plan_of({"agent": ("a", "b")}), patterns, "mine")


def test_sides_are_alike_if_as_many_agents_of_a_kind_play_them() -> None:
    one, two = plan_of({"agent": ("a", "b")}), plan_of(TAG, HUNTERS_AND_PREY)
    assert are_alike(two_sides(one, (), "mine"), one)
    assert not are_alike(two_sides(two, (), "mine"), two)
    three = plan_of({"agent": ("a", "b", "c")})
    assert not are_alike(two_sides(three, ("a", ".*"), "mine"), three)


def test_order_of_sides_does_not_matter() -> None:
    plan = plan_of({"agent": ("a", "b", "c")})
    one, other, third = (two_sides(plan, patterns, "mine") for patterns in (("a", ".*"), ("b|c", "a"), ("b", ".*")))
    assert same_agents(one, other)
    assert not same_agents(one, third)
