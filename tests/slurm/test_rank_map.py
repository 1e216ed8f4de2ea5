"""What is printed of where ranks lie."""

from __future__ import annotations

from srlhpc.slurm.placement import allocate
from srlhpc.slurm.rank_map import rank_map, resources_table
from tests.slurm.placing import CPU, GPU, PARTITIONS, TWO_TYPES, planned, profile


def test_map_of_ranks_has_component_and_node_of_every_rank() -> None:
    plan = planned()
    lines = rank_map(plan, allocate(plan, profile({**TWO_TYPES, "actor": {"nodes": 2}}), 60))
    assert lines[1].split() == ["0", "0", "0", "coordinator-0"]
    assert lines[-1].split() == ["7", "1", "1", "actor-3"]


def test_map_of_many_ranks_has_one_row_for_those_alike() -> None:
    plan = planned(trainers=4, actors=101, policy_servers={"ranks": 1})
    roles = {"default": CPU, "trainer": {**GPU, "nodes": 2}}
    partitions = {**PARTITIONS, "cpu": {"cpus_per_node": 25}}
    lines = rank_map(plan, allocate(plan, profile(roles, partitions=partitions), 60))
    assert [line.split(maxsplit=3) for line in lines[1:]] == [
        ["0", "0", "0", "coordinator-0"],
        ["1-4", "0", "0-1", "trainer-default-0…3, 2 a node"],
        ["5", "1", "0", "policy_server-0"],
        ["6-25", "1", "0", "actor-0…19"],
        ["26-46", "1", "1", "actor-20…40"],
        ["47-106", "1", "2-4", "actor-41…100, 20 a node"],
    ]


def test_map_of_ranks_has_all_roles_of_a_rank() -> None:
    plan = planned(trainers=1, actors=40, actors_inference="inline")
    lines = rank_map(plan, allocate(plan, profile({"default": CPU}, partitions={"cpu": {"cpus_per_node": 50}}), 60))
    assert lines[-1].split(maxsplit=3) == ["2-41", "0", "0", "actor-0…39 + policy_server-0…39"]


def test_table_of_resources_has_nodes_gpus_and_cost() -> None:
    lines = resources_table(allocate(planned(), profile(TWO_TYPES), 90))
    assert "partition gpu, 1 node with 4 ranks, 4 CPUs, 2 GPUs" in lines[0]
    assert lines[-1] == "time limit 01:30:00: at most 12.0 core-hours, 3.0 GPU-hours a job"
