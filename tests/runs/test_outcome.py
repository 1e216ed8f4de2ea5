"""How an attempt's end is written down."""

from __future__ import annotations

from pathlib import Path

from srlhpc.data.atomic import read_json
from srlhpc.runs.outcome import Outcome, amend_end, write_end
from srlhpc.runs.paths import RunPaths


def test_amended_end_keeps_its_time(tmp_path: Path) -> None:
    attempt = RunPaths(tmp_path).new_attempt()
    write_end(attempt, Outcome("interrupted", "preemption", "stopped on request"), 0.0)
    before = read_json(attempt.end) or {}
    amend_end(attempt, Outcome("failed", "requeue", "refused"))
    assert read_json(attempt.end) == before | {"state": "failed", "reason": "requeue", "message": "refused"}


def test_foreman_survives_an_end_that_cannot_be_written(tmp_path: Path) -> None:
    attempt = RunPaths(tmp_path).attempt(1)
    write_end(attempt, Outcome("interrupted", "preemption", ""), 0.0)
    assert not attempt.end.exists()
