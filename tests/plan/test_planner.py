"""From a spec to ranks, and who feeds and serves whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from srlhpc.comm.channel import Link, Stream
from srlhpc.environment import Spaces
from srlhpc.plan.lag_limits import needs_grants
from srlhpc.plan.layouts import block_layout, digest, fragment
from srlhpc.plan.plan import Plan, RolePlan
from srlhpc.plan.planner import make_plan
from srlhpc.plan.senders import senders_to
from srlhpc.plan.sizes import batch_blocks, block_fragments, memory_bytes, outbox_slots, pool_slots
from srlhpc.plan.table import plan_table
from srlhpc.ranks.wiring import Wiring, inference_rows
from srlhpc.specs.experiment import ExperimentSpec
from tests.launch.making_runs import settings
from tests.launch.recording_transport import RecordingTransport
from tests.scripted import scripted_spaces

ALONE = scripted_spaces({"agent": ("agent",)})
TAG = scripted_spaces({"agent": ("runner_0", "runner_1", "chaser_0")})


def planned(spaces: Spaces = ALONE, *, serial: bool = False, **changes: Any) -> Plan:
    job = settings({"factory": "catch"}, stop={"updates": 1}, **changes)
    return make_plan(ExperimentSpec.model_validate(job), spaces, serial=serial)


def actors(kind: str = "server", ranks: int = 2, ring: int = 2) -> dict[str, Any]:
    return {"ranks": ranks, "ring": ring, "environments": 4, "inference": {"kind": kind}}


def two_policies(**changes: Any) -> dict[str, Any]:
    policy = {
        "network": {"kind": "mlp"},
        "algorithm": {"kind": "ppo", "minibatches": 1},
        "batch": {"fragments": 8, "fragment_steps": 8},
    }
    agents = [{"match": "runner_.*", "policy": "runners"}, {"match": ".*", "policy": "chasers"}]
    return {"policies": {"runners": policy, "chasers": policy}, "agents": agents} | changes


def labels(plan: Plan) -> list[list[str]]:
    return [[role.label for role in rank.roles] for rank in plan.ranks]


def feeds(plan: Plan, policy: str = "default") -> list[str]:
    """Trainer of every group."""
    return [plan.sink_of(group, policy).label for group in range(len(plan.groups))]


def serves(plan: Plan, policy: str = "default") -> list[str]:
    """Policy server of every group."""
    return [plan.server_of(group, policy).label for group in range(len(plan.groups))]


# --- ranks ---------------------------------------------------------------------------------------------------------


def test_server_inference_has_a_rank_for_every_role() -> None:
    plan = planned(actors=actors(), policy_servers={"ranks": 2}, evaluators={"ranks": 1})
    assert labels(plan) == [
        ["coordinator-0"], ["trainer-default-0"], ["policy_server-0"], ["policy_server-1"], ["evaluator-0"],
        ["actor-0"], ["actor-1"],
    ]  # fmt: skip


def test_inline_inference_puts_a_server_beside_every_actor() -> None:
    plan = planned(actors=actors("inline"))
    assert labels(plan) == [
        ["coordinator-0"], ["trainer-default-0"], ["actor-0", "policy_server-0"], ["actor-1", "policy_server-1"],
    ]  # fmt: skip


def test_trainer_inference_puts_a_server_beside_every_trainer() -> None:
    plan = planned(actors=actors("trainer"), trainers={"ranks": 2})
    assert labels(plan) == [
        ["coordinator-0"], ["trainer-default-0", "policy_server-0"], ["trainer-default-1", "policy_server-1"],
        ["actor-0"], ["actor-1"],
    ]  # fmt: skip


def test_every_trained_policy_has_its_own_trainers() -> None:
    plan = planned(TAG, **two_policies(trainers={"ranks": 2}))
    assert [trainer.label for trainer in plan.named("trainer")] == [
        "trainer-runners-0", "trainer-runners-1", "trainer-chasers-0", "trainer-chasers-1",
    ]  # fmt: skip


def test_serial_run_has_all_roles_on_rank_0() -> None:
    plan = planned(serial=True, actors=actors(), evaluators={"ranks": 1})
    assert len(plan.ranks) == 1
    assert {role.name for role in plan.roles} == {"coordinator", "trainer", "policy_server", "evaluator", "actor"}


def test_addresses_are_places_in_the_list_of_roles() -> None:
    plan = planned(actors=actors("inline"))
    assert [role.address for role in plan.roles] == list(range(len(plan.roles)))


def test_ranks_that_only_act_need_no_torch() -> None:
    assert [rank.needs_torch for rank in planned(actors=actors()).ranks] == [False, True, True, False, False]
    assert [rank.needs_torch for rank in planned(actors=actors("inline")).ranks] == [False, True, True, True]


# --- who feeds and serves whom -------------------------------------------------------------------------------------


def test_groups_are_shared_out_over_trainers_and_servers() -> None:
    plan = planned(actors=actors(ranks=3, ring=2), trainers={"ranks": 2}, policy_servers={"ranks": 3})
    assert feeds(plan) == ["trainer-default-0", "trainer-default-1"] * 3
    assert serves(plan) == ["policy_server-0", "policy_server-1", "policy_server-2"] * 2


def test_inline_groups_are_served_on_their_own_rank() -> None:
    plan = planned(actors=actors("inline", ranks=3, ring=2))
    for group, (actor, _) in enumerate(plan.groups):
        assert plan.server_of(group, "default").rank == actor.rank


def test_trainer_inference_serves_a_group_where_it_is_trained() -> None:
    plan = planned(actors=actors("trainer"), trainers={"ranks": 2})
    for group in range(len(plan.groups)):
        assert plan.server_of(group, "default").rank == plan.sink_of(group, "default").rank


def test_trainers_serve_their_own_policy_only() -> None:
    plan = planned(TAG, **two_policies(actors=actors("trainer")))
    for policy in ("runners", "chasers"):
        assert {plan.server_of(group, policy).rank for group in range(4)} == {plan.trainers(policy)[0].rank}


def test_both_ends_name_the_same_groups() -> None:
    job = two_policies(actors=actors(ranks=3, ring=3), trainers={"ranks": 2}, policy_servers={"ranks": 2})
    plan = planned(TAG, **job)
    for policy in ("runners", "chasers"):
        fed = [feeder.group for sink in plan.sinks(policy) for feeder in plan.feeders(sink)]
        served = [each.group for server in plan.named("policy_server") for each in plan.served(server, policy)]
        assert sorted(fed) == sorted(served) == list(range(9))


@pytest.mark.parametrize("kind", ["server", "inline", "trainer"])
@pytest.mark.parametrize("lag", [None, 0])
def test_every_link_has_two_ends_with_one_layout(kind: str, lag: int | None) -> None:
    job = two_policies(actors=actors(kind, ranks=3, ring=2), trainers={"ranks": 2})
    job["policies"] = {name: policy | {"max_policy_lag": lag} for name, policy in job["policies"].items()}
    plan = planned(TAG, **job)
    transport = RecordingTransport()
    wiring = Wiring(plan, transport)
    for role in plan.roles:
        WIRES[role.name](plan, role, wiring)
    for rank in plan.ranks[1:]:
        reporting_role = plan.reporting_role(rank.rank)
        assert reporting_role is not None
        wiring.reporter_ends(reporting_role)
    wiring.coordinator_ends()
    assert transport.outboxes == transport.inboxes
    assert {link.stream for link in transport.outboxes} >= {
        Stream.BLOCKS,
        Stream.REQUESTS,
        Stream.REPLIES,
        Stream.REPORTS,
    }
    rank_of = {role.address: role.rank for role in plan.roles}
    for here in (set(rank_of.values()), {1, 5}, {3, 4, 6, 7}):
        described = {link: rows.layout.digest for rows in inference_rows(plan, here) for link in rows.links}
        assert described == {
            link: digest
            for link, digest in transport.outboxes.items()
            if link.stream in (Stream.REQUESTS, Stream.REPLIES)
            and rank_of[link.source] != rank_of[link.destination]
            and {rank_of[link.source], rank_of[link.destination]} <= here
        }
    for rank in set(rank_of.values()):
        senders = {rank_of[link.source] for link in transport.inboxes if rank_of[link.destination] == rank} - {rank}
        subscribes = any(role.name == "policy_server" for role in plan.ranks[rank].roles)
        parameters = {plan.trainers(policy)[0].rank for policy in plan.spec.policies} if subscribes else set()
        assert plan.ranks[rank].is_essential or senders_to(plan, rank) == senders | parameters


def test_ranks_of_actors_and_evaluators_alone_are_not_essential() -> None:
    plan = planned(actors=actors(), policy_servers={"ranks": 2}, evaluators={"ranks": 1})
    assert [rank.is_essential for rank in plan.ranks] == [True] * 4 + [False] * 3
    assert senders_to(plan, 4) == {0, 1}
    inline = planned(actors=actors("inline"))
    assert [rank.is_essential for rank in inline.ranks] == [True, True, False, False]


def _wire_actor(plan: Plan, role: RolePlan, wiring: Wiring) -> None:
    for place in range(plan.spec.actors.ring):
        for seat in plan.seats:
            wiring.seat_channels(role, plan.group_number(role, place), seat)


def _wire_trainer(plan: Plan, role: RolePlan, wiring: Wiring) -> None:
    wiring.blocks(role)
    if needs_grants(plan, role.policy or ""):
        wiring.grant_ends(role)
    if role.index == 0:
        wiring.part_outbox(role, slots=2)
        wiring.part_inbox(role)


def _wire_server(plan: Plan, role: RolePlan, wiring: Wiring) -> None:
    for policy in dict.fromkeys(seat.policy for seat in plan.seats):
        if role.policy in (None, policy):
            wiring.serving_ends(role, policy)


def _wire_nothing(plan: Plan, role: RolePlan, wiring: Wiring) -> None:
    pass


WIRES: dict[str, Callable[[Plan, RolePlan, Wiring], None]] = {
    "coordinator": _wire_nothing,
    "trainer": _wire_trainer,
    "policy_server": _wire_server,
    "actor": _wire_actor,
}


def test_links_of_different_groups_and_policies_differ() -> None:
    plan = planned(TAG, **two_policies(actors=actors(ranks=2, ring=3)))
    server = plan.named("policy_server")[0]
    links: list[Link] = [
        plan.link(Stream.REQUESTS, actor, server, plan.group_number(actor, place), policy)
        for actor, place in plan.groups
        for policy in ("runners", "chasers")
    ]
    assert len(set(links)) == len(links) == 12


# --- agents --------------------------------------------------------------------------------------------------------


def test_agents_get_their_policy_by_the_first_expression_that_matches() -> None:
    seats = {seat.policy: seat for seat in planned(TAG, **two_policies()).seats}
    assert seats["runners"].agents == (0, 1)
    assert seats["chasers"].agents == (2,)


def test_expression_must_match_the_whole_name() -> None:
    agents = [{"match": "runner", "policy": "chasers"}, {"match": "runner_.*", "policy": "runners"},
              {"policy": "chasers"}]  # fmt: skip
    seats = {seat.policy: seat for seat in planned(TAG, **two_policies(agents=agents)).seats}
    assert seats["runners"].agents == (0, 1)


def test_agents_that_are_not_trained_are_in_no_block() -> None:
    agents = [{"match": "runner_0", "policy": "default", "train": False}, {}]
    plan = planned(TAG, agents=agents)
    (seat,) = plan.seats
    assert (seat.agents, seat.trained) == ((0, 1, 2), (1, 2))
    assert block_fragments(plan, "default") == 8


def test_policy_that_is_never_trained_has_no_trainer() -> None:
    agents = [{"match": "runner_.*", "policy": "runners"}, {"policy": "chasers", "train": False}]
    plan = planned(TAG, **two_policies(agents=agents))
    assert plan.trained_policies == ("runners",)
    assert plan.trainers("chasers") == ()


# --- sizes ---------------------------------------------------------------------------------------------------------


def test_batch_is_a_whole_number_of_blocks() -> None:
    plan = planned(actors=actors(), batch={"fragments": 12, "fragment_steps": 8})
    assert (block_fragments(plan, "default"), batch_blocks(plan, "default")) == (4, 3)


def test_records_of_a_fragment_include_the_burn_in() -> None:
    plan = planned(
        network={"kind": "mlp", "recurrent": {"kind": "gru", "size": 4}},
        batch={"fragments": 8, "fragment_steps": 8, "burn_in_steps": 3},
    )
    assert fragment(plan, "default").records == 11


def test_memory_of_a_trainer_is_its_pool_and_two_batches() -> None:
    plan = planned(actors=actors())
    memory = memory_bytes(plan)
    block = block_layout(plan, "default").size_bytes
    pool, batch = pool_slots(plan, "default"), batch_blocks(plan, "default")
    assert memory["trainer-default-0"] == block * (pool + 2 * batch)
    assert memory["actor-0"] == block * outbox_slots(plan, plan.named("actor")[0], plan.named("trainer")[0])


def test_table_shows_every_rank_and_whom_it_feeds() -> None:
    table = plan_table(planned(actors=actors()))
    lines = table.splitlines()
    assert [line.split()[:2] for line in lines[1:6]] == [
        ["0", "coordinator-0"], ["1", "trainer-default-0"], ["2", "policy_server-0"], ["3", "actor-0"],
        ["4", "actor-1"],
    ]  # fmt: skip
    assert lines[4].endswith("trainer-default-0; served by policy_server-0")
    assert "batch: 2 blocks a trainer" in table


def test_table_tells_many_ranks_that_are_alike_in_one_line() -> None:
    one = plan_table(planned(actors=actors(ranks=4))).splitlines()[4]
    assert one.split("  ")[:2] == ["3 … 6", "actor-0 … actor-3 (4 ranks)"]
    assert one.endswith("trainer-default-0; served by policy_server-0")
    lines = plan_table(planned(actors=actors(ranks=8), policy_servers={"ranks": 4})).splitlines()
    assert "2 … 5  policy_server-0 … policy_server-3 (4 ranks)" in lines[3]
    assert lines[4].startswith("6, 8 … 12  actor-0 … actor-6 (4 ranks)")
    assert lines[4].endswith("served by policy_server-0, policy_server-1")
    assert lines[5].startswith("7, 9 … 13  actor-1 … actor-7 (4 ranks)")


def test_grants_are_needed_where_the_lag_is_limited() -> None:
    assert not needs_grants(planned(max_policy_lag=None), "default")
    assert needs_grants(planned(), "default")
    assert needs_grants(planned(max_policy_lag=0), "default")
    assert needs_grants(planned(serial=True), "default")


# --- digest --------------------------------------------------------------------------------------------------------


def test_equal_specs_have_equal_plans() -> None:
    assert digest(planned()) == digest(planned())
    assert planned().to_json() == planned().to_json()


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 4},
        {"actors": actors(ranks=3)},
        {"batch": {"fragments": 8, "fragment_steps": 9}},
        {"algorithm": {"kind": "ppo", "minibatches": 2, "learning_rate": 1e-5}},
        {"serial": True},
    ],
)
def test_digest_changes_with_the_spec(changes: dict[str, Any]) -> None:
    assert digest(planned(**changes)) != digest(planned())


def test_digest_changes_with_the_spaces() -> None:
    assert digest(planned(scripted_spaces({"agent": ("other",)}))) != digest(planned())
