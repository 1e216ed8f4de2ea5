"""Findings about nodes."""

from __future__ import annotations

import resource

import pytest

from srlhpc.doctor.machine_rules import clocks, environment, machines, open_files, shared_memory, shortage
from tests.doctor.reported import VERSIONS, lost, node, report

MIB = 1 << 20


@pytest.mark.parametrize(
    ("free", "level"), [(1, "fault"), (23, "fault"), (24, "warning"), (111, "warning"), (112, "ok")]
)
def test_level_follows_the_shared_memory(free: int, level: str) -> None:
    small = node("small", shared_memory={"size": 512 * MIB, "free": free * MIB})
    found = shared_memory([node("large"), small])
    assert found.level == level
    assert found.found.startswith(f"{free} MiB of 512 MiB free on small")


def test_missing_shared_memory_is_a_fault() -> None:
    assert shared_memory([node(shared_memory=None)]).level == "fault"


@pytest.mark.parametrize(
    ("limit", "level"), [(64, "fault"), (255, "fault"), (256, "warning"), (1024, "ok"), (resource.RLIM_INFINITY, "ok")]
)
def test_level_follows_the_limit_of_open_files(limit: int, level: str) -> None:
    assert open_files([node("n1"), node("n2", open_files=limit)]).level == level


def test_remedy_for_open_files_stays_within_the_hard_limit() -> None:
    assert "`ulimit -n 512`" in open_files([node(open_files=64, open_files_most=512)]).remedy
    assert "`ulimit -n 4096`" in open_files([node(open_files=64, open_files_most=-1)]).remedy


def test_shortage_is_the_first_that_mpi_cannot_start_without() -> None:
    assert shortage([node(open_files=64)]) == "open files"
    assert shortage([node()]) is None
    assert shortage([]) is None


@pytest.mark.parametrize(("skew", "level"), [(0.0, "ok"), (0.5, "ok"), (-2.0, "warning"), (45.0, "fault")])
def test_level_follows_the_difference_of_clocks(skew: float, level: str) -> None:
    found = clocks([report(0), report(1, clock=[10 + skew, 20 + skew, 30 + skew])])
    assert found is not None
    assert found.level == level


def test_clocks_apart_are_named_with_their_difference() -> None:
    found = clocks([report(0), report(1, clock=[8.0, 18.0, 99.0])])
    assert found is not None
    assert found.found == "n2 is 2.0 s behind n1"


def test_clock_of_the_file_server_that_differs_is_a_warning() -> None:
    found = clocks([report(0, host=node(against_folder_seconds=-5.0))])
    assert found is not None
    assert (found.level, "differ by 5.0 s" in found.found) == ("warning", True)


def test_clocks_that_were_never_read_are_no_finding() -> None:
    assert clocks([lost()]) is None


def test_same_environment_everywhere_is_ok() -> None:
    found = environment([node("n1"), node("n2")], node("here"), job=True)
    assert (found.level, found.found) == ("ok", "3.11.7 with srlhpc 1.0, the same as here, numpy 2.0, torch 2.9")


def test_nodes_that_differ_are_a_fault_that_names_one() -> None:
    found = environment([node("n1"), node("n2", versions=VERSIONS | {"torch": "2.6"})], node(), job=True)
    assert (found.level, found.found) == ("fault", "n2 has torch 2.6, not 2.9 (n1)")


def test_another_srlhpc_than_here_is_a_fault() -> None:
    assert environment([node()], node(code="def"), job=True).level == "fault"
    assert environment([node(versions=VERSIONS | {"srlhpc": "0.9"})], node(), job=True).level == "fault"


def test_other_libraries_than_here_are_a_warning() -> None:
    found = environment([node(versions=VERSIONS | {"numpy": "1.26"}, python="3.12.1")], node(), job=True)
    assert (found.level, found.found) == (
        "warning",
        "/env/python on n1 has numpy 1.26, not 2.0; Python 3.12.1, not 3.11.7 (here)",
    )


def test_machines_are_each_host_once() -> None:
    ranks = [report(0, host=node("a")), report(1, host=node("b")), report(2, host=node("a")), lost(3, host={})]
    assert [each["host"] for each in machines(ranks)] == ["a", "b"]
