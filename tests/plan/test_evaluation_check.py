"""Opponents of evaluators in a plan: which sides are measured against whom, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from srlhpc.environment import Spaces
from srlhpc.errors import UserError
from srlhpc.plan.evaluation_check import matchups
from srlhpc.plan.plan import Plan
from tests.plan.test_planner import planned, two_policies
from tests.scripted import scripted_spaces

PAIR = scripted_spaces({"agent": ("left", "right")})
SIDES = [{"match": "left", "policy": "default"}, {"match": "right", "policy": "default"}]
ONE_KIND = dict.fromkeys(("here", "there"), two_policies()["policies"]["runners"])
OTHER = two_policies()["policies"]["runners"]


def evaluated(*opponents: dict[str, Any], spaces: Spaces = PAIR, **changes: Any) -> Plan:
    own = {"ranks": 1, "opponents": list(opponents), **changes.pop("evaluators", {})}
    chosen: dict[str, Any] = {"agents": SIDES, "versions": {"every_updates": 2, "keep": 3, "tags": {"early": 1}}}
    return planned(spaces, **{**chosen, "evaluators": own, **changes})


def measured(plan: Plan) -> list[tuple[int | None, str, str]]:
    return [(found.side.side, found.opponent.policy, found.opponent.version) for found in matchups(plan)]


def test_every_side_meets_each_opponent() -> None:
    plan = evaluated({"policy": "default", "version": "versions"}, {"policy": "default", "version": "early"})
    assert measured(plan) == [
        (0, "default", "versions"), (1, "default", "versions"), (0, "default", "early"), (1, "default", "early"),
    ]  # fmt: skip


def test_plan_says_who_meets_whom() -> None:
    plan = evaluated({"policy": "default", "version": "early"}, evaluators={"players": ["live", "early"]})
    assert plan.notes[0] == (
        "evaluators: a round has 20 games of default-0 and of default-1 (live, early) against default, its version "
        "'early'"
    )


def test_sides_need_no_matches_and_change_no_seats() -> None:
    assert [seat.side for seat in evaluated({"policy": "default"}).seats] == [None]


def test_policy_plays_its_own_sides() -> None:
    agents = [{"match": "left", "policy": "here"}, {"match": "right", "policy": "there"}]
    plan = evaluated({"policy": "there", "version": "versions"}, agents=agents, policies=ONE_KIND)
    assert measured(plan) == [(0, "there", "versions")]


def test_policy_of_another_run_plays_any_side() -> None:
    policies = {"default": OTHER, "rival": OTHER | {"weights_from": "runs/other"}}
    plan = evaluated({"policy": "rival"}, policies=policies)
    assert measured(plan) == [(0, "rival", "live"), (1, "rival", "live")]
    assert plan.seats_of("rival") == ()


@pytest.mark.parametrize(
    ("opponent", "changes", "message"),
    [
        ({"policy": "default"}, {"evaluators": {"ranks": 0}}, "evaluators.opponents: nobody plays against them"),
        ({"policy": "default"}, {"agents": [{"policy": "default"}]}, "need two sides, and agents has one entry"),
        ({"policy": "default", "version": "erly"}, {}, "is 'erly', which is no tag of versions; did you mean 'early'"),
        ({"policy": "default"}, {"evaluators": {"ranks": 1, "players": ["late"]}},
         "evaluators.players.0: is 'late', which is no tag"),
        ({"policy": "default", "version": "versions"}, {"versions": {}}, "is versions, and the run keeps none"),
        ({"policy": "rival"}, {"policies": {"default": OTHER, "rival": OTHER}},
         "policies.rival.weights_from: is missing; an opponent that plays no agents"),
        ({"policy": "rival", "version": "early"},
         {"policies": {"default": OTHER, "rival": OTHER | {"weights_from": "runs/other"}}},
         "is 'early', and nobody trains policy rival"),
        ({"policy": "nobody"}, {}, "'nobody' is not in policies"),
        ({"policy": "default"}, {"versions": {"tags": {"live": 1}}}, "versions.tags.live: evaluators mean something"),
        ({"policy": "rival"},
         {"policies": {"default": OTHER, "rival": OTHER | {"weights_from": "runs/other"}},
          "agents": [*SIDES, {"match": "nobody", "policy": "rival"}]},
         "agents.2.match: is 'nobody', which matches no agent"),
    ],
)  # fmt: skip
def test_opponent_that_nobody_can_meet_is_refused_with_a_remedy(
    opponent: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises((UserError, ValidationError), match=message):
        evaluated(opponent, **changes)


def test_opponent_that_would_play_the_measured_side_too_is_refused() -> None:
    spaces = scripted_spaces({"agent": ("left", "middle", "right")})
    agents = [{"match": name, "policy": policy} for name, policy in
              (("left", "here"), ("middle", "here"), ("right", "there"))]  # fmt: skip
    with pytest.raises(UserError, match="evaluators.opponents.0.policy: there meets no side that learns"):
        evaluated({"policy": "there"}, spaces=spaces, agents=agents, policies=ONE_KIND)


def test_players_without_opponents_are_refused() -> None:
    with pytest.raises(ValidationError, match="players are measured against opponents, and there are none"):
        planned(PAIR, evaluators={"ranks": 1, "players": ["early"]})
