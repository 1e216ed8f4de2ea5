"""How ranks lie on nodes of one type, and when they do not fit."""

from __future__ import annotations

import pytest

from srlhpc.slurm.placement import allocate
from tests.slurm.placing import CPU, GPU, TWO_TYPES, planned, profile, refusal


def test_first_nodes_have_one_rank_more_where_they_do_not_divide_evenly() -> None:
    actors = allocate(planned(actors=5), profile({**TWO_TYPES, "actor": {"nodes": 2}}), 60).components[1]
    assert actors.tasks == (3, 2)
    assert [actors.node_of(rank) for rank in range(4, 9)] == [0, 0, 0, 1, 1]


def test_trainers_take_more_nodes_where_one_has_too_few_gpus() -> None:
    gpu = allocate(planned(trainers=4), profile({**TWO_TYPES, "policy_server": CPU}), 60).components[0]
    assert (gpu.nodes, gpu.tasks, gpu.options["gpus-per-node"], gpu.gpus) == (2, (3, 2), "2", 4)


def test_ranks_that_share_gpus_ask_for_half_as_many() -> None:
    roles = {**TWO_TYPES, "trainer": {**GPU, "gpus_per_rank": 0.5, "gpu_type": "a100"}, "policy_server": CPU}
    assert allocate(planned(), profile(roles), 60).components[0].options["gpus-per-node"] == "a100:1"


def test_ranks_of_a_node_share_the_sum_of_their_cpus() -> None:
    roles = {"default": CPU, "trainer": {"partition": "cpu", "cpus_per_rank": 4}}
    (all_ranks,) = allocate(planned(trainers=1, actors=1), profile(roles), 60).components
    # A coordinator, a policy server and an actor of one CPU beside a trainer of four: seven for four tasks.
    assert all_ranks.options["cpus-per-task"] == 2


def test_libraries_have_as_many_threads_as_their_rank_has_cpus() -> None:
    roles = {"default": CPU, "actor": {"cpus_per_rank": 2}}
    allocation = allocate(planned(trainers=1, actors=2, policy_servers={"threads": 3}), profile(roles), 60)
    assert allocation.threads == {0: 1, 1: 1, 2: 3, 3: 2, 4: 2}


def test_memory_is_the_sum_of_the_fullest_node() -> None:
    roles = {"default": {**CPU, "memory_mb_per_rank": 100}, "trainer": {"memory_mb_per_rank": 1000}}
    (all_ranks,) = allocate(planned(actors=2), profile(roles), 60).components
    assert all_ranks.options["mem"] == "2400M"


def test_exclusive_nodes_cost_all_their_cpus() -> None:
    allocation = allocate(planned(), profile({"default": {**CPU, "exclusive": True}}), 60)
    assert allocation.core_hours == 8.0


@pytest.mark.parametrize("actors", [30, 60])
@pytest.mark.parametrize("facts", [{"cpus_per_node": 7}, {"memory_mb_per_node": 700}, {}])
def test_no_smaller_number_of_nodes_would_do(actors: int, facts: dict[str, int]) -> None:
    plan = planned(trainers=1, actors=actors)
    roles = {"default": {**CPU, "memory_mb_per_rank": 100}, "actor": {"ranks_per_node": 9}}
    (component,) = allocate(plan, profile(roles, partitions={"cpu": facts}), 60).components
    fewer = {**roles, "actor": {"ranks_per_node": 9, "nodes": component.nodes - 1}}
    assert component.nodes > 1
    assert "cannot place" in refusal(plan, profile(fewer, partitions={"cpu": facts}))


def test_gpus_of_a_partition_without_any_are_refused() -> None:
    message = refusal(planned(), profile({"default": CPU, "trainer": {"gpus_per_rank": 1}}))
    assert message.startswith("roles.trainer.partition: is 'cpu', whose nodes have no GPUs")


def test_more_ranks_than_all_nodes_hold_are_refused() -> None:
    message = refusal(planned(actors=40), profile(TWO_TYPES))
    assert message.startswith("roles.actor: cannot place 40 ranks (40 actor) on 4 nodes of partition cpu")


def test_more_ranks_than_the_named_nodes_hold_are_refused() -> None:
    message = refusal(planned(actors=8), profile({**TWO_TYPES, "actor": {"nodes": 2, "ranks_per_node": 2}}))
    assert message.startswith("roles.actor: cannot place 8 ranks (8 actor) on 2 nodes")


def test_more_nodes_than_ranks_are_refused() -> None:
    message = refusal(planned(actors=3), profile({**TWO_TYPES, "actor": {"nodes": 4}}))
    assert message == "roles.actor.nodes: is 4, for 3 ranks; a node must have at least one"


def test_memory_of_only_some_roles_of_a_node_is_refused() -> None:
    message = refusal(planned(), profile({"default": CPU, "trainer": {"memory_mb_per_rank": 1000}}))
    assert message.startswith("roles.coordinator.memory_mb_per_rank: is not set, but other roles")
