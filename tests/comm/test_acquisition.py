"""Groups and trainers of several policies never stand still: every interleaving of small systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from srlhpc.comm.acquisition import Holding, holding, in_order, must_not_wait
from tests.roles.granting import System, explore


def system(lengths: Sequence[int], **changes: Any) -> System:
    """Policies a, b, ... with fragments of so many steps, the limit 0 and batches of one block."""
    names = "abc"[: len(lengths)]
    settings: dict[str, Any] = {"groups": 2} | changes
    for name, usual in (("lags", 0), ("batch", 1)):
        settings[name] = dict(zip(names, settings.get(name, [usual] * len(names)), strict=True))
    return System(dict(zip(names, lengths, strict=True)), **settings)


RELIEVED = {
    "two trainers, 2 and 3": system([2, 3], trainers=2, batch=[2, 1], relieves=True),
    "two trainers, groups that die": system([1, 3], trainers=2, groups=4, deaths=2, relieves=True),
}
"""Fragments that are dropped or lost at one trainer leave it short of what the other waits for."""

SYSTEMS = RELIEVED | {
    "equal lengths": system([1, 1]),
    "one divides the other": system([2, 1], groups=3),
    "batches of two": system([1, 2], groups=3, batch=[2, 2]),
    "2 and 3": system([2, 3], groups=3),
    "4 and 6": system([4, 6], batch=[2, 2]),
    "4 and 6, lag 1 and 0": system([4, 6], lags=[1, 0]),
    "lag 1": system([1, 2], lags=[1, 1]),
    "three policies": system([1, 1, 1], groups=3),
    "three policies, lengths that do not divide": system([1, 2, 3]),
    "the shorter without a limit": system([2, 3], lags=[None, 0]),
    "the longer without a limit": system([2, 3], lags=[0, None]),
    "groups that die": system([2, 3], groups=3, deaths=2),
    "two trainers": system([1, 2], trainers=2, groups=4, batch=[2, 1]),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_no_interleaving_ends_where_nothing_moves_or_a_policy_is_never_trained_again(name: str) -> None:
    explored = explore(SYSTEMS[name])
    assert explored.states > 10
    assert explored.stuck == []
    assert not any(explored.starving.values())


@pytest.mark.parametrize(
    "name", ["equal lengths", "one divides the other", "2 and 3", "4 and 6", "three policies", "two trainers"]
)
def test_groups_that_take_policies_in_any_order_can_stand_still(name: str) -> None:
    # So the test above can fail: this is what was done before there was an order.
    known = SYSTEMS[name]
    explored = explore(System(**vars(known) | {"has_order": False}))
    assert explored.stuck


@pytest.mark.parametrize("name", RELIEVED)
def test_several_trainers_of_several_policies_need_relief(name: str) -> None:
    assert explore(System(**vars(RELIEVED[name]) | {"relieves": False})).stuck


def test_longest_fragments_come_first_and_names_decide_between_equals() -> None:
    assert in_order({"a": 4, "c": 8, "b": 8}) == ("b", "c", "a")
    assert in_order({"a": 4, "c": 8, "b": 8}, first=["a"]) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("place", "held", "expected"),
    [
        (0, [False, False], Holding.NOTHING),
        (1, [True, False], Holding.EARLIER),
        (0, [False, True], Holding.LATER),
        (1, [True, False, True], Holding.LATER),
        (1, [False, True, False], Holding.NOTHING),
    ],
)
def test_group_waits_only_for_policies_that_come_after_all_it_holds(
    place: int, held: list[bool], expected: Holding
) -> None:
    assert holding(place, held) == expected


def test_only_lengths_that_do_not_divide_each_other_start_beyond_the_limit() -> None:
    assert must_not_wait({"a": 4, "b": 8, "c": 4}) == ()
    assert must_not_wait({"a": 4, "b": 6, "c": 12}) == ("b",)
    # A short one that comes first ends within those that follow.
    assert must_not_wait({"a": 4, "b": 8}, first=["a"]) == ("a",)
