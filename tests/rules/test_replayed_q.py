"""Replay as a whole: a rule that draws learns, and a serial run that goes on gives the same bits."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from srlhpc.evaluation import evaluate
from srlhpc.ranks.serial import run_serial
from tests.launch.making_runs import make_attempt, make_run, outcome, settings
from tests.launch.test_exact_resume import differences, whole_and_resumed

CATCH = {"factory": "catch", "rows": 5, "columns": 3}


def job(updates: int, *, every: int = 1000, draw: str = "prioritized", **changes: Any) -> dict[str, Any]:
    return settings(
        CATCH,
        stop={"updates": updates},
        network={"kind": "tests.rules.action_values"},
        algorithm={"kind": "tests.rules.replayed_q"},
        batch={"fragments": 32, "fragment_steps": 1},
        replay={
            "capacity": 400,
            "samples_per_insert": 4.0,
            "start_steps": 100,
            "block_steps": 8,
            "draw": {"kind": draw},
        },
        actors={"ranks": 1, "ring": 2, "environments": 4},
        checkpoint={"every_updates": every},
        **changes,
    )


def test_catch_is_learnt_from_replay(tmp_path: Path) -> None:
    run = job(250)
    paths = make_run(tmp_path, run)
    attempt, _ = make_attempt(paths, run)
    run_serial(paths, attempt)
    assert outcome(attempt)["reason"] == "updates"
    assert evaluate(paths, episodes=50)["return_mean"] >= 0.9


@pytest.mark.parametrize("draw", ["uniform", "prioritized"])
def test_run_that_goes_on_from_a_store_that_is_overwritten_gives_the_same_bits(tmp_path: Path, draw: str) -> None:
    one, other = whole_and_resumed(tmp_path, partial(job, every=20, draw=draw), 40, 60)
    assert differences(one["policies"], other["policies"]) == []
    assert differences(one["roles"], other["roles"]) == []
    assert differences(one["replay"], other["replay"]) == []
    assert one["replay"]["replay-default-0"]["store"]["inserted_blocks"] > 400 / 32
