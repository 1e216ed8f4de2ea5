"""How an attempt's end is written down."""

from __future__ import annotations

from pathlib import Path

from srlhpc.data.atomic import read_json
from srlhpc.runs.outcome import Outcome, amend_end, write_end
from srlhpc.runs.paths import RunPaths


def test_end_when_amended_then_the_time_of_the_end_stays(tmp_path: Path) -> None:
    attempt = RunPaths(tmp_path).new_attempt()
    write_end(attempt, Outcome("interrupted", "preemption", "stopped on request"), 0.0)
    before = read_json(attempt.end) or {}
    amend_end(attempt, Outcome("failed", "requeue", "refused"))
    assert read_json(attempt.end) == before | {"state": "failed", "reason": "requeue", "message": "refused"}


def test_end_when_the_disk_takes_nothing_then_the_foreman_goes_on(tmp_path: Path) -> None:
    attempt = RunPaths(tmp_path).attempt(1)
    write_end(attempt, Outcome("interrupted", "preemption", ""), 0.0)
    assert not attempt.end.exists()
