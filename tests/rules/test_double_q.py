"""A rule that is nothing like PPO adds files and edits none: action values, a target, a ladder of exploration."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from srlhpc.evaluation import evaluate
from srlhpc.ranks.serial import run_serial
from tests.launch.making_runs import make_attempt, make_run, outcome, settings
from tests.launch.test_exact_resume import differences, whole_and_resumed

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
    one, other = whole_and_resumed(tmp_path, partial(job, every=5), 5, 10)
    assert differences(one["policies"], other["policies"]) == []
    assert any(name.startswith("target.") for name in one["policies"]["default"]["optimizer"])
