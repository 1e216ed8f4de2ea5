"""What sinfo says, and the profile made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.slurm.first_profile import first_profile
from srlhpc.slurm.partitions import NodeState, free_table, parse_gpus, parse_nodes
from srlhpc.specs.cluster import read_cluster

WIDTHS = (128, 256, 32, 64, 32, 32, 512, 512)


def line(*values: str) -> str:
    return "".join(value.ljust(width) for value, width in zip(values, WIDTHS, strict=True))


def node(partition: str, name: str, gpus: dict[str, int], default: bool = False, limit: int | None = 60) -> NodeState:
    return NodeState(partition, default, name, "idle", 8, 6, 8000, limit, gpus, 1 if gpus else 0)


CLUSTER = [
    node("cpu", "c1", {}, default=True),
    node("cpu", "c2", {}, default=True),
    node("gpu", "g1", {"a100": 4}, limit=None),
    node("all", "c1", {}),
    node("all", "g1", {"a100": 4}),
]


def test_nodes_of_sinfo_are_read_by_column() -> None:
    text = line("gpu*", "g1", "mix", "2/6/0/8", "8000", "1-00:00:00", "gpu:a100:4(S:0-1)", "gpu:a100:1(IDX:0)")
    assert parse_nodes(text + "\n") == [
        NodeState("gpu", True, "g1", "mix", 8, 6, 8000, 1440, {"a100": 4}, 1),
    ]


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("(null)", {}),
        ("gpu:2", {"": 2}),
        ("gpu", {"": 1}),
        ("gpu:(null):2(IDX:0-1)", {"": 2}),
        ("gpu:a100:4(S:0-1),gpu:v100:2,shard:8", {"a100": 4, "v100": 2}),
        ("craynetwork:4", {}),
    ],
)
def test_gpus_of_generic_resources_are_counted_by_type(gres: str, gpus: dict[str, int]) -> None:
    assert parse_gpus(gres) == gpus


@pytest.mark.parametrize("state", ["down", "idle*", "drain", "idle~", "resv", "maint"])
def test_node_that_takes_no_jobs_is_not_up(state: str) -> None:
    assert not NodeState("p", False, "n", state, 8, 8, 1, None, {}, 0).is_up


def test_free_table_has_free_cpus_and_gpus_by_partition() -> None:
    rows = [row.split() for row in free_table(CLUSTER)]
    assert rows[1] == ["cpu*", "2/2", "12/16", "0/0", "1", "h"]
    assert rows[2] == ["gpu", "1/1", "6/8", "3/4", "no", "limit"]


def test_first_profile_puts_trainers_where_gpus_are(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(first_profile("mine", CLUSTER, requeue=True))
    profile = read_cluster(str(path)).profile
    assert profile.role("actor").partition == "cpu"
    assert (profile.role("trainer").partition, profile.role("trainer").gpu_type) == ("gpu", "a100")
    assert profile.partitions["all"].gpus_per_node is None
    assert (profile.partitions["gpu"].gpus_per_node, profile.partitions["gpu"].max_minutes) == (4, None)


def test_first_profile_quotes_odd_names_of_partitions(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(first_profile("odd", [node("no", "n", {}), node("1e3", "n", {})], requeue=False))
    assert list(read_cluster(str(path)).profile.partitions) == ["no", "1e3"]
