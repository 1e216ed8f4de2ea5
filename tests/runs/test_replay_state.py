"""What a status says of replay."""

from __future__ import annotations

from typing import Any

from srlhpc.runs.progress import progress_text
from srlhpc.runs.replay_state import filling_text, replay_lines, resume_lines
from srlhpc.specs.experiment import ExperimentSpec
from tests.launch.making_runs import settings

COUNTERS = {
    "filling": 0.0,
    "start_steps": 50_000.0,
    "steps_inserted": 60_000,
    "records_inserted": 61_000,
    "records_drawn": 80_000,
    "drawable": 59_000,
    "blocks": 120,
    "slots": 200,
    "dropped_priorities": 0,
}


def status(**changes: float) -> dict[str, Any]:
    return {"roles": {"replay": COUNTERS | changes}, "steps": 0}


def test_store_that_fills_says_how_far_it_is() -> None:
    fills = status(filling=1.0, steps_inserted=3000)
    assert filling_text(fills) == "replay fills: 3,000 of 50,000 steps"
    assert progress_text(fills).startswith("replay fills: 3,000 of 50,000 steps · 0 steps")
    assert replay_lines(fills)[0].startswith("  replay fills: 3,000 of 50,000 steps, 59,000 windows can be drawn")


def test_store_that_did_not_come_back_says_that_it_fills_again() -> None:
    fills = status(filling=1.0, steps_inserted=3000, refills=1.0)
    assert filling_text(fills) == "replay starts empty and fills again: 3,000 of 50,000 steps"
    assert filling_text(status(refills=1.0)) is None


def test_blocks_that_are_too_old_are_counted() -> None:
    assert replay_lines(status(too_old=7))[0].endswith("80,000 were drawn, 7 blocks too old (replay.max_age)")
    assert "too old" not in replay_lines(status(too_old=0))[0]


def test_resume_says_what_becomes_of_replay() -> None:
    section = {"capacity": 1000, "samples_per_insert": 4.0, "start_steps": 5000}
    job = settings(
        {"factory": "catch"},
        stop={"updates": 1},
        network={"kind": "tests.rules.action_values"},
        algorithm={"kind": "tests.rules.replayed_q"},
        batch={"fragments": 8, "fragment_steps": 1},
        replay=section,
    )
    spec = ExperimentSpec.model_validate(job)
    assert resume_lines(spec, serial=True) == ["replay of policy default: goes on as it was"]
    (line,) = resume_lines(spec, serial=False)
    assert line.startswith(
        "replay of policy default: starts empty, and training goes on when 5,000 steps came in; --set"
    )
    job["policies"]["default"]["replay"] = section | {"checkpoint": True}
    (line,) = resume_lines(ExperimentSpec.model_validate(job), serial=False)
    assert line == "replay of policy default: goes on with what the checkpoint holds of it"


def test_store_that_is_drawn_from_says_what_came_in_and_went_out() -> None:
    assert filling_text(status()) is None
    assert replay_lines(status()) == [
        "  replay: 120 of 200 blocks, 59,000 windows can be drawn, 61,000 records came in, 80,000 were drawn"
    ]


def test_store_that_is_full_says_so_and_what_came_too_late() -> None:
    (line,) = replay_lines(status(blocks=200, dropped_priorities=7))
    assert line.startswith("  replay: full, 200 blocks")
    assert line.endswith("7 priorities of records that were gone or too old")


def test_run_without_replay_says_nothing_of_it() -> None:
    assert (filling_text({}), replay_lines({"roles": {"trainer": {}}})) == (None, [])
