"""Components in the order of their nodes' names, for Slurm's PMIx."""

from __future__ import annotations

import pytest

from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.slurm.node_order import by_name, order_warning, sorted_by_nodes
from srlhpc.slurm.partitions import NodeState

GPU = Component({"partition": "gpu"}, 0, 4, 1, (4,), 8, 2)
CPU = Component({"partition": "cpu,long"}, 4, 4, 2, (2, 2), 4, 0)
ANYWHERE = Component({}, 4, 4, 2, (2, 2), 4, 0)


def node(name: str, partition: str, *, is_default: bool = False) -> NodeState:
    return NodeState(partition, is_default, name, "idle", 8, 8, 1000, None, {}, 0)


NODES = [
    node("n10", "gpu"),
    node("n11", "gpu"),
    node("n9", "cpu"),
    node("n9", "long"),
    node("n2", "all", is_default=True),
]


def test_components_are_ordered_by_first_nodes_and_ranks_stay() -> None:
    made = sorted_by_nodes(Allocation((GPU, CPU), 10), NODES)
    assert made.components == (CPU, GPU)
    assert [made.component_of(rank) for rank in (0, 3, 4, 7)] == [1, 1, 0, 0]


def test_component_without_a_partition_has_the_default_ones_nodes() -> None:
    assert sorted_by_nodes(Allocation((GPU, ANYWHERE), 10), NODES).components == (ANYWHERE, GPU)


def test_components_on_a_partition_without_nodes_keep_their_order() -> None:
    assert sorted_by_nodes(Allocation((GPU, CPU), 10), NODES[:3]).components == (GPU, CPU)


def test_names_sort_by_letters_and_by_number() -> None:
    assert sorted(["gpu1", "cpu10", "cpu9", "cpu"], key=by_name) == ["cpu", "cpu9", "cpu10", "gpu1"]


@pytest.mark.parametrize(
    ("plugin", "nodes", "is_wrong"),
    [
        ("pmix", [["c1", "c2"], ["g1"]], False),
        ("pmix_v4", [["g1"], ["c1", "c2"]], True),
        ("pmix", [["n1", "n3"], ["n2"]], True),
        ("pmi2", [["g1"], ["c1"]], False),
        ("pmix", [], False),
    ],
)
def test_nodes_out_of_order_are_a_warning_under_pmix(plugin: str, nodes: list[list[str]], is_wrong: bool) -> None:
    assert (order_warning(plugin, nodes) is not None) == is_wrong
