"""A rule that is nothing like PPO adds files and edits none: action values, a target, a ladder of exploration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from srlhpc.evaluation import evaluate
from srlhpc.ranks.serial import run_serial
from tests.launch.making_runs import checkpoint, make_attempt, make_run, outcome, settings, tree_of
from tests.launch.test_exact_resume import differences

CATCH = {"factory": "catch", "rows": 5, "columns": 3}


def job(updates: int, *, every: int = 1000, returns: float | None = None) -> dict[str, Any]:
    return settings(
        CATCH,
        stop={"updates": updates, "return_mean": returns},
        network={"kind": "tests.rules.action_values"},
        algorithm={"kind": "tests.rules.double_q", "scale": {"start": 1.0, "end": 0.1, "steps": 8000}},
        batch={"fragments": 16, "fragment_steps": 16},
        actors={"ranks": 1, "ring": 2, "environments": 8},
        checkpoint={"every_updates": every},
    )


def test_catch_is_learnt_and_evaluated_without_exploring(tmp_path: Path) -> None:
    run = job(400, returns=0.8)
    paths = make_run(tmp_path, run)
    attempt, _ = make_attempt(paths, run)
    run_serial(paths, attempt)
    assert outcome(attempt)["reason"] == "return_mean"
    assert evaluate(paths, episodes=50)["return_mean"] >= 0.8


def test_target_and_schedule_of_exploration_resume_exactly(tmp_path: Path) -> None:
    whole, halves = (make_run(tmp_path, job(10, every=5), name) for name in ("whole", "halves"))
    run_serial(whole, make_attempt(whole, job(10, every=5))[0])
    run_serial(halves, make_attempt(halves, job(5, every=5))[0])
    run_serial(halves, make_attempt(halves, job(10, every=5), checkpoint(halves, 5))[0])
    one, other = (tree_of(paths, 10)["policies"] for paths in (whole, halves))
    assert differences(one, other) == []
    assert any(name.startswith("target.") for name in one["default"]["optimizer"])
