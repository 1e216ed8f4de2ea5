"""Watching the ranks of an attempt."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from srlhpc.data.atomic import read_json, write_json
from srlhpc.data.forgiving import Forgiving
from srlhpc.launch import monitor as watching
from srlhpc.launch.monitor import AttemptMonitor, Limits
from srlhpc.plan.roles import ROLES, role_of
from srlhpc.runs.lease import Lease
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.processes import ProcessIdentity
from srlhpc.runs.progress import ProgressLine
from tests.failing_disk import FailingDisk


class LooksThenEnds:
    """A launcher that ends after some looks; before each, something may happen."""

    def __init__(self, *happenings: Any) -> None:
        self._happenings = list(happenings)

    @property
    def has_ended(self) -> bool:
        """Whether it was looked at to its end."""
        return not self._happenings

    def poll(self) -> int | None:
        if not self._happenings:
            return 0
        if (happens := self._happenings.pop(0)) is not None:
            happens()
        return None


def test_only_a_replaced_status_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = RunPaths(tmp_path)
    attempt = paths.attempt(1)
    attempt.make()
    read: list[Path] = []

    def noted(path: Path) -> dict[str, Any] | None:
        read.append(path)
        return read_json(path)

    def status(**content: Any) -> Any:
        return lambda: write_json(paths.status, {"attempt": 1, **content})

    monkeypatch.setattr(watching, "read_json", noted)
    watch = AttemptMonitor(paths, attempt, Lease(paths.lease), (), ProgressLine(sys.stderr), Limits(poll=0.0))
    launcher: Any = LooksThenEnds(None, status(phase="starting", ranks=[]), None, None, status(phase="training"), None)
    assert watch.until_gone(launcher, lambda: None) is None
    assert read == [paths.status] * 2
    assert watch.was_up


class Rank(NamedTuple):
    rank: int
    label: str

    @property
    def is_essential(self) -> bool:
        return ROLES[role_of(self.label)].is_essential


def test_ranks_that_are_late_are_named_and_thousands_are_counted(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    attempt = paths.attempt(1)
    attempt.make()
    ranks = [Rank(0, "coordinator-0"), *(Rank(number, f"actor-{number - 1}") for number in range(1, 2001))]
    limits = Limits(start=0.0, poll=0.0)
    watch = AttemptMonitor(paths, attempt, Lease(paths.lease), ranks, ProgressLine(sys.stderr), limits)
    launcher: Any = LooksThenEnds(None)
    outcome = watch.until_gone(launcher, lambda: None)
    assert outcome is not None
    assert "missing: coordinator-0 (rank 0), actor-0 (rank 1)" in (outcome.message or "")
    assert "actor-8 (rank 9) and 1991 more. Their logs" in (outcome.message or "")


@pytest.mark.parametrize(
    ("lost", "others_come", "goes_on"),
    [("actor-0", True, True), ("actor-0", False, False), ("trainer-default-0", True, False)],
)
def test_rank_that_dies_during_the_start_ends_the_attempt_unless_the_others_come_and_go_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str, others_come: bool, goes_on: bool
) -> None:
    paths = RunPaths(tmp_path)
    attempt = paths.attempt(1)
    attempt.make()
    ranks = [Rank(0, "coordinator-0"), Rank(1, lost), Rank(2, "actor-1")]
    watch = AttemptMonitor(paths, attempt, Lease(paths.lease), ranks, ProgressLine(sys.stderr), Limits(poll=0.0))
    now = 0.0
    monkeypatch.setattr(watching.time, "monotonic", lambda: now)

    def die() -> None:
        (attempt.exits / "1").write_text("139 5.0")

    def come() -> None:
        write_json(paths.status, {"attempt": 1, "phase": "starting", "ranks": [{"rank": 2, "alive": others_come}]})

    def wait() -> None:
        nonlocal now
        now += 2 * Limits.lost

    launcher: Any = LooksThenEnds(die, come, wait, None)
    watch.until_gone(launcher, lambda: None)
    assert launcher.has_ended == goes_on


def watched(tmp_path: Path) -> tuple[RunPaths, Lease, AttemptMonitor]:
    paths = RunPaths(tmp_path / "run")
    attempt = paths.attempt(1)
    attempt.make()
    write_json(attempt.attempt, {})
    lease = Lease(paths.lease)
    lease.take(1)
    limits = Limits(poll=0.0, renew=-1.0)
    return paths, lease, AttemptMonitor(paths, attempt, lease, (), ProgressLine(sys.stderr), limits)


def test_looks_that_fail_in_passing_end_nothing(tmp_path: Path, failing_disk: FailingDisk) -> None:
    _, _, watch = watched(tmp_path)

    def fail() -> None:
        for name in ("exits", "outcome.json", "status.json", "attempt.json", "lease.json", "0001"):
            failing_disk.fail(name, errno.ESTALE)

    launcher: Any = LooksThenEnds(fail, None, failing_disk.heal, None)
    assert watch.until_gone(launcher, lambda: None) is None


def test_file_system_that_fails_for_too_long_ends_the_attempt_by_name(
    tmp_path: Path, failing_disk: FailingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "Forgiving", lambda: Forgiving(seconds=0.0))
    _, _, watch = watched(tmp_path)
    launcher: Any = LooksThenEnds(lambda: failing_disk.fail("exits", errno.EIO), None)
    outcome = watch.until_gone(launcher, lambda: None)
    assert outcome is not None
    assert outcome.reason == "file_system"
    assert "attempts/0001/exits: the file system has failed for 0 s" in outcome.message


def test_run_that_somebody_else_holds_is_left_at_the_next_renewal(tmp_path: Path) -> None:
    paths, _, watch = watched(tmp_path)
    other = ProcessIdentity.of(os.getppid())
    assert other

    def take_over() -> None:
        write_json(paths.lease, {**other.to_json(), "attempt": 2})

    launcher: Any = LooksThenEnds(take_over, None)
    outcome = watch.until_gone(launcher, lambda: None)
    assert outcome is not None
    assert outcome.reason == "lease"
    assert f"process {os.getppid()}" in outcome.message
    assert "runs attempt 2" in outcome.message


def test_run_whose_folder_is_removed_ends_and_stays_removed(tmp_path: Path) -> None:
    paths, _, watch = watched(tmp_path)
    launcher: Any = LooksThenEnds(lambda: shutil.rmtree(paths.folder), None)
    outcome = watch.until_gone(launcher, lambda: None)
    assert outcome is not None
    assert outcome.reason == "removed"
    assert not paths.folder.exists()
