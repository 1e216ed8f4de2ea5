"""Watching the ranks of an attempt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from srlhpc.data.atomic import read_json, write_json
from srlhpc.launch import watching
from srlhpc.launch.lease import Lease
from srlhpc.launch.progress_line import ProgressLine
from srlhpc.launch.rundir import RunPaths
from srlhpc.launch.watching import AttemptWatch, Limits


class LooksThenEnds:
    """A launcher that ends after some looks; before each, something may happen."""

    def __init__(self, *happenings: Any) -> None:
        self._happenings = list(happenings)

    def poll(self) -> int | None:
        if not self._happenings:
            return 0
        if (happens := self._happenings.pop(0)) is not None:
            happens()
        return None


def test_status_is_read_again_only_when_it_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    watch = AttemptWatch(paths, attempt, Lease(paths.lease), (), ProgressLine(sys.stderr), Limits(poll=0.0))
    launcher: Any = LooksThenEnds(None, status(phase="starting", ranks=[]), None, None, status(phase="training"), None)
    assert watch.until_gone(launcher, lambda: None) is None
    assert read == [paths.status] * 2
    assert watch.was_up


class Rank(NamedTuple):
    rank: int
    label: str


def test_ranks_that_are_late_are_named_and_thousands_are_counted(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    attempt = paths.attempt(1)
    attempt.make()
    ranks = [Rank(0, "coordinator-0"), *(Rank(number, f"actor-{number - 1}") for number in range(1, 2001))]
    limits = Limits(start=0.0, poll=0.0)
    watch = AttemptWatch(paths, attempt, Lease(paths.lease), ranks, ProgressLine(sys.stderr), limits)
    launcher: Any = LooksThenEnds(None)
    outcome = watch.until_gone(launcher, lambda: None)
    assert outcome is not None
    assert "missing: coordinator-0 (rank 0), actor-0 (rank 1)" in (outcome.message or "")
    assert "actor-8 (rank 9) and 1991 more. Their logs" in (outcome.message or "")
