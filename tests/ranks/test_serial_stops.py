"""A serial run that is stopped after any update and goes on has the same bits as one that was never stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from srlhpc.ranks.serial import run_serial
from srlhpc.roles.coordinating.coordinator import Coordinator
from srlhpc.runs.paths import RunPaths
from tests.launch.making_runs import change_job, checkpoint, make_attempt, make_run, outcome, settings, tree_of
from tests.launch.test_exact_resume import differences

END = 7
OF_TIME = {"time", "attempt", "seconds", "steps_per_second", "timing", "bottleneck"}
CATCH = {"factory": "catch", "rows": 5, "columns": 3}
RECALL = {"factory": "recall", "choices": 3, "delay": 2}
LSTM = {"kind": "mlp", "hidden": [8], "recurrent": {"kind": "lstm", "size": 4}}
ALGORITHM = {"kind": "ppo", "learning_rate": 1e-2, "epochs": 2, "minibatches": 2}
FAR = {"every_updates": 1_000_000}


def job(environment: dict[str, Any], **changes: Any) -> dict[str, Any]:
    network = changes.pop("network", {"kind": "mlp", "hidden": [8]})
    return settings(
        environment, stop={"updates": END}, checkpoint=FAR, network=network, **{"algorithm": ALGORITHM} | changes
    )


def two_policies(left: int, right: int, *, ring: int = 3, **changes: Any) -> dict[str, Any]:
    """Policies with fragments of so many steps, in groups that both play in."""
    made = job({"factory": "tests.scripted", "steps": [[5], [3, 4]], "agents": ["a", "b"]})
    made["actors"] = {"ranks": 2, "ring": ring, "environments": 4}
    policies = {
        name: {
            "network": network,
            "algorithm": ALGORITHM,
            "batch": {"fragments": 8, "fragment_steps": steps} | changes,
        }
        for name, steps, network in (("left", left, LSTM), ("right", right, {"kind": "mlp", "hidden": [8]}))
    }
    return made | {
        "policies": policies,
        "agents": [{"match": "a", "policy": "left"}, {"match": "b", "policy": "right"}],
    }


JOBS = {
    "one policy": job(CATCH, normalize={"observations": True, "returns": True}),
    "memory with burn-in": job(
        RECALL, network=LSTM, batch={"fragments": 8, "fragment_steps": 6, "burn_in_steps": 3}
    ),
    "more groups than a batch has room for": job(
        CATCH, batch={"fragments": 12, "fragment_steps": 7}, actors={"ranks": 2, "ring": 3, "environments": 4}
    ),
    "batches used three times": job(
        RECALL, network=LSTM, batch={"fragments": 8, "fragment_steps": 8, "uses": 3},
        actors={"ranks": 1, "ring": 3, "environments": 4},
    ),
    "a queue of batches": job(
        CATCH, batch={"fragments": 8, "fragment_steps": 8, "uses": 2, "queue": 3},
        actors={"ranks": 2, "ring": 3, "environments": 4},
    ),
    "an inline server": job(
        RECALL, network=LSTM, actors={"ranks": 2, "ring": 2, "environments": 4, "inference": {"kind": "inline"}}
    ),
    "parameters that act only after every third update": job(
        RECALL, network=LSTM, algorithm=ALGORITHM | {"kind": "tests.rules.seldom"}
    ),
    "more episodes than one report holds": job(
        {"factory": "catch", "rows": 2, "columns": 2},
        batch={"fragments": 64, "fragment_steps": 16}, actors={"ranks": 4, "ring": 2, "environments": 8},
    ),
    "policies of 8 and 4": two_policies(8, 4),
    "policies of 4 and 8": two_policies(4, 8),
    "policies of 6 and 4": two_policies(6, 4),
    "policies of 4 and 6, batches used twice": two_policies(4, 6, uses=2),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _a_line_for_every_update(monkeypatch: pytest.MonkeyPatch) -> None:
    is_newer = property(lambda coordinator: coordinator._progress.updates > coordinator._metrics_updates)
    monkeypatch.setattr(Coordinator, "_has_first_update", is_newer)


@pytest.mark.parametrize("name", JOBS)
def test_run_that_was_stopped_twice_goes_on_to_the_same_bits_and_curves(name: str, tmp_path: Path) -> None:
    whole = make_run(tmp_path, JOBS[name], "whole")
    run_serial(whole, make_attempt(whole, JOBS[name])[0])
    parts = make_run(tmp_path, JOBS[name], "parts")
    last = None
    for updates in (2, 5, END):
        last = go_on(parts, JOBS[name], updates, last)
    assert differences(tree_of(whole, END), tree_of(parts, END)) == []
    assert curves(whole) == curves(parts)
    assert [line["updates"] for line in curves(whole)] == list(range(1, END + 1))


def go_on(paths: RunPaths, job: dict[str, Any], updates: int, last: int | None) -> int:
    """Runs until so many updates, from the checkpoint of the last ones."""
    until = job | {"stop": {"updates": updates}}
    change_job(paths, until)
    attempt, _ = make_attempt(paths, until, checkpoint(paths, last) if last is not None else None)
    run_serial(paths, attempt)
    assert outcome(attempt)["reason"] == "updates"
    return updates


def curves(paths: RunPaths) -> list[dict[str, Any]]:
    """The lines of the metrics, without what clocks tell."""
    lines = [json.loads(line) for line in paths.metrics.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in OF_TIME} for line in lines]
