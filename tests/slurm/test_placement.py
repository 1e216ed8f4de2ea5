"""From a plan and a profile to components, or to the reason why it cannot work."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srlhpc.errors import UserError
from srlhpc.plan.planner import make_plan
from srlhpc.plan.replay_sizes import sent_bytes, store_bytes
from srlhpc.plan.sizes import batches_bytes
from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.placement import allocate
from tests.slurm.placing import CPU, GPU, PARTITIONS, TWO_TYPES, planned, profile, refusal

ONE_PARTITION = {
    "default": {"partition": "gpu"},
    "trainer": {"gpus_per_rank": 1},
    "policy_server": {"gpus_per_rank": 1},
}


def on_gpu(nodes: int | None, actors: int, roles: Any = ONE_PARTITION, trainers: int = 1) -> Allocation:
    """Roles on the partition gpu, which has so many nodes of eight CPUs and two GPUs."""
    partitions = {"gpu": {"nodes": nodes, "cpus_per_node": 8, "gpus_per_node": 2}}
    return allocate(planned(trainers, actors), profile(roles, partitions=partitions), 60)


def test_roles_on_one_type_of_node_are_one_component() -> None:
    allocation = allocate(planned(actors=4), profile({"default": CPU}), 60)
    assert [(each.first_rank, each.ranks, each.nodes) for each in allocation.components] == [(0, 8, 1)]


def test_coordinator_trainers_and_servers_come_first_on_two_types_of_node() -> None:
    gpu, cpu = allocate(planned(), profile({**TWO_TYPES, "actor": {"ranks_per_node": 2}}), 60).components
    assert gpu.options == {
        "partition": "gpu",
        "nodes": 1,
        "ntasks": 4,
        "ntasks-per-node": 4,
        "cpus-per-task": 1,
        "gpus-per-node": "2",
    }
    assert (cpu.options["partition"], cpu.first_rank, cpu.ranks, cpu.tasks) == ("cpu", 4, 4, (2, 2))


def test_coordinator_lies_where_the_profile_says() -> None:
    components = allocate(planned(), profile({**TWO_TYPES, "coordinator": CPU}), 60).components
    assert [each.options["partition"] for each in components] == ["cpu", "gpu", "cpu"]


def test_many_actors_have_no_gpus_beside_them() -> None:
    roles = {"default": {"partition": "gpu"}, "trainer": {"gpus_per_rank": 1}}
    learning, acting = allocate(planned(actors=16), profile(roles), 60).components
    assert (learning.ranks, learning.gpus, acting.gpus) == (3, 2, 0)
    assert "gpus-per-node" not in acting.options


@pytest.mark.parametrize("nodes", [2, None])
def test_ranks_of_a_small_partition_are_one_component(nodes: int | None) -> None:
    (component,) = on_gpu(nodes, actors=12).components
    assert (component.tasks, component.options["gpus-per-node"], component.gpus) == ((8, 7), "2", 4)


def test_no_gpus_lie_idle_where_the_partition_has_nodes_for_two_components() -> None:
    assert [(part.nodes, part.gpus) for part in on_gpu(3, actors=12).components] == [(1, 2), (2, 0)]


def test_ranks_without_gpus_lie_on_nodes_of_any_type_of_gpu() -> None:
    roles = {**ONE_PARTITION, "trainer": {"gpus_per_rank": 1, "gpu_type": "a100"}, "policy_server": {"nodes": 1}}
    (component,) = on_gpu(1, actors=3, roles=roles).components
    assert component.options["gpus-per-node"] == "a100:1"


def test_components_that_need_too_many_nodes_are_refused_with_arithmetic() -> None:
    roles = {**ONE_PARTITION, "actor": {"exclusive": True}}
    with pytest.raises(UserError) as caught:
        on_gpu(2, actors=12, roles=roles)
    message = (
        "partitions.gpu.nodes: is 2, but the job needs 3 nodes of it at once (1 + 2): the components of a heterogeneous"
    )
    assert str(caught.value).startswith(message)
    assert len(on_gpu(3, actors=12, roles=roles).components) == 2


def test_nodes_of_all_components_of_a_partition_are_counted() -> None:
    partitions = {"cpu": {"nodes": 1, "cpus_per_node": 8}, "gpu": {"nodes": 1, "cpus_per_node": 8, "gpus_per_node": 2}}
    cluster = profile({**TWO_TYPES, "coordinator": CPU}, partitions=partitions)
    assert refusal(planned(), cluster).startswith(
        "partitions.cpu.nodes: is 1, but the job needs 2 nodes of it at once (1 + 1"
    )


def test_cpus_are_by_default_the_threads_of_the_job() -> None:
    many = planned(1, 1, policy_servers={"threads": 3})
    (all_ranks,) = allocate(many, profile({"default": {**CPU, "nodes": 4}}), 60).components
    assert all_ranks.options["cpus-per-task"] == 3


@given(st.integers(1, 6), st.integers(3, 12), st.sampled_from([1, 2, 4]), st.booleans())
def test_components_hold_every_rank_once(trainers: int, actors: int, most: int, shared: bool) -> None:
    plan = planned(trainers, actors)
    roles = {"default": CPU} if shared else {**TWO_TYPES, "actor": {"ranks_per_node": most}}
    partitions = {name: {**facts, "nodes": None} for name, facts in PARTITIONS.items()}
    allocation = allocate(plan, profile(roles, partitions=partitions), 60)
    ranks = [n for each in allocation.components for n in range(each.first_rank, each.first_rank + each.ranks)]
    assert ranks == list(range(len(plan.ranks)))
    assert all(sum(each.tasks) == each.ranks and len(each.tasks) == each.nodes for each in allocation.components)


def test_trainers_whose_batches_need_more_memory_are_refused() -> None:
    plan = planned(trainers=1, batch={"fragments": 4_000_000, "fragment_steps": 8})
    needed = math.ceil(batches_bytes(plan, plan.trained_policies[0]) / 1e6)
    enough, short = (
        profile({"default": {**CPU, "memory_mb_per_rank": 100}, "trainer": {"memory_mb_per_rank": given}})
        for given in (needed, needed - 1)
    )
    assert allocate(plan, enough, 60).components
    said = refusal(plan, short)
    assert said.startswith(f"roles.trainer.memory_mb_per_rank: is {needed - 1}, but a trainer of 'default' needs ")
    assert "MB for its batches alone" in said


REPLAYED = {
    "algorithm": {"kind": "tests.plan.wanting", "data": "replay"},
    "batch": {"fragments": 8, "fragment_steps": 1},
}


@pytest.mark.parametrize(("ranks", "host"), [(0, "trainer"), (2, "replay")])
def test_replay_that_needs_more_memory_is_refused_with_the_arithmetic(ranks: int, host: str) -> None:
    plan = planned(**REPLAYED, replay={"capacity": 4_000_000, "samples_per_insert": 1.0, "ranks": ranks})
    shard = store_bytes(plan, "default") + sent_bytes(plan, "default")
    needed = math.ceil((shard + (batches_bytes(plan, "default") if host == "trainer" else 0)) / 1e6)
    enough, short = (
        profile({"default": {**CPU, "memory_mb_per_rank": 1000}, host: {"memory_mb_per_rank": given}})
        for given in (needed, needed - 1)
    )
    assert allocate(plan, enough, 60).components
    said = refusal(plan, short)
    assert said.startswith(
        f"roles.{host}.memory_mb_per_rank: is {needed - 1}, but replay-default-0 needs {needed:,} MB (15,625 blocks "
    )
    assert said.endswith("raise it, or lower replay.capacity, or raise replay.ranks in the job")


def test_replay_ranks_are_placed_as_their_role_says() -> None:
    plan = planned(**REPLAYED, replay={"capacity": 1000, "samples_per_insert": 1.0, "ranks": 2})
    roles = {"default": CPU, "trainer": GPU, "policy_server": {"partition": "gpu"}, "replay": {"partition": "cpu"}}
    components = allocate(plan, profile(roles), 60).components
    placed = {each.options["partition"]: range(each.first_rank, each.first_rank + each.ranks) for each in components}
    assert all(replay.rank in placed["cpu"] for replay in plan.replays("default"))


def test_cuda_trainers_without_a_gpu_in_the_profile_are_refused() -> None:
    wants_cuda = planned(trainers=1)
    spec = wants_cuda.spec.model_copy(
        update={"trainers": wants_cuda.spec.trainers.model_copy(update={"device": "cuda"})}
    )
    message = refusal(make_plan(spec, wants_cuda.spaces), profile({"default": CPU}))
    assert message.startswith("roles.trainer.gpus_per_rank: is 0, but the job's trainers.device is 'cuda'")


def test_fewer_cpus_than_threads_are_refused() -> None:
    message = refusal(planned(policy_servers={"threads": 4}), profile({"default": {**CPU, "cpus_per_rank": 2}}))
    assert message.startswith("roles.policy_server.cpus_per_rank: is 2, but the job gives policy_server-0 4 threads")


def test_longer_time_than_the_partition_allows_is_refused() -> None:
    message = refusal(planned(), profile(TWO_TYPES), minutes=601)
    assert message.startswith("partitions.gpu.max_minutes: is 600, but the job asks for 601 minutes")


def test_time_that_is_over_before_the_signal_is_refused() -> None:
    assert refusal(planned(), profile(TWO_TYPES), minutes=1).startswith("signal_lead_seconds: is 90;")
