"""Sides and matches in a plan: who learns in which group, whose blocks go where, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from srlhpc.comm.channel import Stream
from srlhpc.environment import Spaces
from srlhpc.errors import UserError
from srlhpc.plan.plan import Plan
from srlhpc.ranks.wiring import Wiring
from tests.launch.recording_transport import RecordingTransport
from tests.plan.test_planner import WIRES, actors, planned, two_policies
from tests.scripted import scripted_spaces

PAIR = scripted_spaces({"agent": ("left", "right")})
SIDES = [{"match": "left", "policy": "default"}, {"match": "right", "policy": "default"}]
VERSIONS = {"every_updates": 2, "keep": 3}


WITH_IDLE = dict.fromkeys(("default", "idle"), two_policies()["policies"]["runners"])
PSRO: dict[str, Any] = {
    "versions": {"every_updates": 2, "keep": None},
    "matches": {"rule": {"kind": "psro"}, "shares": {"past": 0.5, "payoffs": 0.5}},
}


def matched(spaces: Spaces = PAIR, *, past: float = 0.5, **changes: Any) -> Plan:
    chosen: dict[str, Any] = {
        "actors": actors(),
        "agents": SIDES,
        "versions": VERSIONS,
        "matches": {"rule": {"kind": "fictitious"}, "shares": {"self_play": 1.0 - past, "past": past}},
    }
    return planned(spaces, **{**chosen, **changes})


def learning(plan: Plan) -> list[str | None]:
    """The only seat that learns in each group; None where all do."""
    seats = (plan.learning_seat(group) for group in range(len(plan.groups)))
    return [None if seat is None else seat.name for seat in seats]


def test_sides_learn_in_turn_in_the_groups_that_meet_the_past() -> None:
    left, right = "default-0", "default-1"
    assert learning(matched(actors=actors(ranks=4))) == [left, None, right, None, right, None, left, None]
    assert learning(matched(past=1.0)) == [left, right, right, left]
    assert learning(matched(past=0.0)) == [None] * 4


def test_side_that_is_not_trained_never_learns() -> None:
    sides = [SIDES[0], SIDES[1] | {"train": False}]
    assert learning(matched(past=1.0, agents=sides)) == ["default-0"] * 4


def test_versions_play_each_other_in_groups_where_nobody_learns() -> None:
    plan = matched(**PSRO, actors=actors(ranks=4))
    assert [plan.measures(group) for group in range(8)] == [False, True] * 4
    assert learning(plan)[::2] == ["default-0", "default-1", "default-1", "default-0"]
    assert not any(plan.is_trained(group, seat) for group in range(1, 8, 2) for seat in plan.seats)
    assert any("4 groups in which versions play each other" in note for note in plan.notes)
    every_link_has_two_ends(plan)


@pytest.mark.parametrize("past", [0.0, 0.25, 0.5, 1.0])
def test_every_link_of_every_seat_has_two_ends(past: float) -> None:
    every_link_has_two_ends(matched(past=past, actors=actors(ranks=4), trainers={"ranks": 2}))


def every_link_has_two_ends(plan: Plan) -> None:
    transport = RecordingTransport()
    wiring = Wiring(plan, transport)
    for role in plan.roles:
        WIRES[role.name](plan, role, wiring)
    for actor, place in plan.groups:
        wiring.match_channels(actor, plan.group_number(actor, place))
    wiring.matchmaker_ends()
    assert transport.outboxes == transport.inboxes
    assert {link.stream for link in transport.outboxes} >= {Stream.MATCH_REQUESTS, Stream.MATCHES}
    requests = [link for link in transport.outboxes if link.stream == Stream.REQUESTS]
    assert len(set(requests)) == len(requests) == 2 * len(plan.groups)


def test_every_trainer_is_fed_by_groups_of_both_sides_where_they_learn_in_turn() -> None:
    plan = matched(past=1.0, actors=actors(ranks=4), trainers={"ranks": 2})
    for trainer in plan.trainers("default"):
        assert {feeder.seat.name for feeder in plan.feeders(trainer)} == {"default-0", "default-1"}


def test_blocks_of_a_seat_carry_a_number_of_its_own() -> None:
    plan = matched(past=0.0)
    numbers = [plan.seat_number(each.group, each.seat) for each in plan.group_seats("default")]
    assert numbers == list(range(8))


def test_whole_seat_plays_all_sides() -> None:
    (seat,) = matched().whole_seats
    assert (seat.agents, seat.trained, seat.name) == ((0, 1), (0, 1), "default")


def test_plan_says_who_learns_where() -> None:
    (note,) = (note for note in matched(actors=actors(ranks=4)).notes if note.startswith("matches: "))
    assert note == (
        "matches: 4 groups in which all sides learn, 2 groups in which default learns as side 0 ('left') against the "
        "past, 2 groups in which default learns as side 1 ('right') against the past"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"versions": {}}, r"versions.every_updates: is null, so there would be no past to meet"),
        ({"agents": [{}]}, r"matches: need two sides, and agents has one entry"),
        (
            {"spaces": scripted_spaces({"agent": ("left", "right", "third")}), "agents": [*SIDES[:1], {"match": ".*"}]},
            r"agents.1: is a side of 2 agents, and agents.0, which policy default plays too, of 1",
        ),
        ({"agents": [{"match": ".*"}, {"match": "right"}]}, r"agents.1.match: is 'right', which matches no agent"),
        (
            {
                "spaces": scripted_spaces({"agent": ("left", "right", "third")}),
                **PSRO,
                "agents": [*SIDES, {"match": "third"}],
            },
            r"matches.rule: psro is for games of two sides, and agents has 3 entries",
        ),
        (
            {**PSRO, "agents": [SIDES[0], SIDES[1] | {"policy": "idle", "train": False}], "policies": WITH_IDLE},
            r"agents.1: nobody trains policy idle, so it has no versions that psro could mix",
        ),
        ({**PSRO, "versions": VERSIONS}, r"versions.keep: is 3, and psro mixes all versions"),
        ({**PSRO, "actors": actors(ranks=1, ring=1)}, r"matches.shares.payoffs: 0.5 of 1 group"),
        (
            {"past": 0.5, "actors": actors(ranks=1, ring=1)},
            r"agents.1: policy default would never learn this side: of 1 group",
        ),
    ],
)
def test_matches_that_nobody_can_play_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        matched(**changes)
