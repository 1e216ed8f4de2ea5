"""How an attempt's end is written down."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from srlhpc.data.atomic import read_json, write_json
from srlhpc.runs.outcome import Outcome, amend_end, summary, write_end
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.progress import ProgressLine, progress_text


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


@pytest.mark.parametrize("is_shown", [True, False])
def test_progress_at_the_end_is_told_once(tmp_path: Path, is_shown: bool) -> None:
    paths, status, out = RunPaths(tmp_path), {"steps": 35216, "updates": 9, "seconds": 8.0}, io.StringIO()
    write_json(paths.status, status)
    line = ProgressLine(out)
    if is_shown:
        line.show(progress_text(status), 0.0)
    line.say(summary(paths, Outcome("interrupted", "signal", ""), line.standing))
    told = out.getvalue().splitlines()
    assert [text for text in told if "35,216 steps" in text] == [progress_text(status)]
    assert "interrupted (signal)" in told
    assert line.standing == ""
