"""Findings about the run folder, with what a file system says injected."""

from __future__ import annotations

from dataclasses import replace

import pytest

from srlhpc.doctor.folder_probe import KEPT_OUT, OPENED, FolderFacts
from srlhpc.doctor.folder_rules import locks, space
from tests.doctor.reported import report

HEALTHY = FolderFacts("/runs", 10 << 30, 10**6, lock=KEPT_OUT)


def test_space_when_there_is_enough_then_ok() -> None:
    assert space(HEALTHY).line == "ok       run folder:         10.0 GiB free in /runs"


@pytest.mark.parametrize("said", ["no space left", "quota exceeded", "Permission denied"])
def test_space_when_a_file_cannot_be_written_then_a_fault(said: str) -> None:
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
def test_space_when_it_runs_out_then_a_warning(facts: FolderFacts) -> None:
    assert space(facts).level == "warning"


def test_locks_when_they_hold_here_and_on_nodes_then_ok() -> None:
    found = locks(HEALTHY, [report(0, lock=""), report(1, lock=KEPT_OUT)])
    assert (found.level, found.found) == ("ok", "keep a second process out here and on n2")


def test_locks_when_refused_then_a_warning_that_programs_need_a_variable() -> None:
    found = locks(replace(HEALTHY, lock="not locked: no locks available"))
    assert (found.level, "no locks available" in found.found) == ("warning", True)
    assert "HDF5_USE_FILE_LOCKING=FALSE" in found.remedy


def test_locks_when_another_node_gets_in_then_a_warning_with_its_name() -> None:
    found = locks(HEALTHY, [report(1, lock=OPENED)])
    assert (found.level, found.found) == (
        "warning",
        "not kept: a file that one process has locked was opened by another on n2",
    )
