"""Ranks that crash again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.cli.main import run_command_line
from srlhpc.data.atomic import write_json
from srlhpc.runs.crash_loop import crash_loop
from srlhpc.runs.paths import RunPaths
from tests.launch.written_runs import STATUS, hold, written_run


def attempts(root: Path, *ends: tuple[str, float] | None) -> RunPaths:
    """A run whose attempts ended so, then; None: one that runs, since 2,000 seconds."""
    paths = written_run(root, "mine")
    for number, end in enumerate(ends, start=1):
        attempt = paths.new_attempt() if number > 1 else paths.attempt(1)
        write_json(attempt.attempt, {"serial": False, "ranks": 3, "time": 2_000.0})
        if end is not None:
            write_json(attempt.end, {"state": end[0], "reason": "killed", "message": "actor died", "time": end[1]})
    return paths


def test_crashes_soon_after_each_other_are_one_loop(tmp_path: Path) -> None:
    paths = attempts(tmp_path, ("interrupted", 0.0), *[("failed", 1_000.0 + 20.0 * n) for n in range(9)], None)
    loop = crash_loop(paths)
    assert loop is not None
    assert (loop.first, loop.last) == (2, 10)
    assert loop.text.startswith("attempts 2 to 10 crashed one after the other (9 times in 2:40 min); the last: actor d")


@pytest.mark.parametrize(
    "ends",
    [
        [("failed", 0.0), ("failed", 10.0), None],
        [("failed", 0.0), ("failed", 10.0), ("failed", 5_000.0), None],
        [("failed", 0.0), ("failed", 10.0), ("failed", 20.0), ("interrupted", 30.0)],
        [None],
    ],
)
def test_few_distant_or_past_crashes_are_no_loop(tmp_path: Path, ends: list[tuple[str, float] | None]) -> None:
    assert crash_loop(attempts(tmp_path, *ends)) is None


def test_long_attempt_ends_a_crash_loop(tmp_path: Path) -> None:
    paths = attempts(tmp_path, ("failed", 0.0), ("failed", 10.0), ("failed", 20.0), None)
    assert crash_loop(paths) is not None
    # The status of the attempt before says nothing of this one.
    write_json(paths.status, {**STATUS, "attempt": 3, "time": 3_000.0})
    assert crash_loop(paths) is not None
    write_json(paths.status, {**STATUS, "attempt": 4, "time": 3_000.0})
    assert crash_loop(paths) is None


@pytest.mark.parametrize("command", ["status", "why"])
def test_crash_loop_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    hold(attempts(tmp_path, ("failed", 0.0), ("failed", 10.0), ("failed", 20.0), None))
    assert run_command_line([command, "mine", "--root", str(tmp_path)]) == 0
    assert "attempts 1 to 3 crashed one after the other" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["status", "why"])
def test_silent_rank_is_named_with_the_time_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    facts = {"host": "cpu1", "alive": True, "silence_limit_seconds": 300.0}
    ranks = [{"rank": n, "label": f"actor-{n}", "silent_seconds": s, **facts} for n, s in ((1, 45.4), (2, 3.0))]
    hold(written_run(tmp_path, "mine", status={**STATUS, "ranks": ranks}))
    assert run_command_line([command, "mine", "--root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "actor-1 (rank 1, cpu1) has reported nothing for 45 s; it counts as dead after 300 s" in out
    assert "actor-2 (rank 2" not in out
