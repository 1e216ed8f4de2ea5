"""Findings about the run folder, with what a file system says injected."""

from __future__ import annotations

from dataclasses import replace

import pytest

from srlhpc.doctor.folder_probe import KEPT_OUT, OPENED, FolderFacts
from srlhpc.doctor.folder_rules import locks, space
from tests.doctor.reported import report

HEALTHY = FolderFacts("/runs", 10 << 30, 10**6, lock=KEPT_OUT)


def test_enough_space_is_ok() -> None:
    assert space(HEALTHY).line == "ok       run folder:         10.0 GiB free in /runs"


@pytest.mark.parametrize("said", ["no space left", "quota exceeded", "Permission denied"])
def test_file_that_cannot_be_written_is_a_fault(said: str) -> None:
    found = space(replace(HEALTHY, error=said))
    assert (found.level, found.found) == ("fault", f"/runs cannot hold a run: {said}")


@pytest.mark.parametrize(
    "facts",
    [
        replace(HEALTHY, free_bytes=1 << 30),
        replace(HEALTHY, free_files=10),
        replace(HEALTHY, over_quota="Disk quotas for user me: block limit reached"),
    ],
)
def test_little_space_is_a_warning(facts: FolderFacts) -> None:
    assert space(facts).level == "warning"


def test_locks_that_hold_here_and_on_nodes_are_ok() -> None:
    found = locks(HEALTHY, [report(0, lock=""), report(1, lock=KEPT_OUT)])
    assert (found.level, found.found) == ("ok", "keep a second process out here and on n2")


def test_refused_locks_are_a_warning_with_the_variable_to_set() -> None:
    found = locks(replace(HEALTHY, lock="not locked: no locks available"))
    assert (found.level, "no locks available" in found.found) == ("warning", True)
    assert "HDF5_USE_FILE_LOCKING=FALSE" in found.remedy


def test_lock_that_lets_another_node_in_is_a_warning_with_its_name() -> None:
    found = locks(HEALTHY, [report(1, lock=OPENED)])
    assert (found.level, found.found) == (
        "warning",
        "not kept: a file that one process has locked was opened by another on n2",
    )
