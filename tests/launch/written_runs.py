"""Run folders as a coordinator and a foreman leave them, for tests that only read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import write_json
from srlhpc.runs.creation import create_run
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.processes import ProcessIdentity

SPEC = """\
seed: {seed}
environment: {{factory: catch}}
policies: {{default: {{network: {{kind: mlp}}, algorithm: {{kind: ppo}}, batch: {{fragments: 4, fragment_steps: 8}}}}}}
actors: {{ranks: 1, environments: 2, inference: {{kind: server}}}}
stop: {{steps: 1000}}
"""
STATUS = {
    "attempt": 1,
    "phase": "training",
    "steps": 4096,
    "updates": 4,
    "return_mean": 12.5,
    "steps_per_second": 1234.0,
    "policy_lag_mean": 0.5,
    "ranks_alive": 2,
    "ranks_planned": 3,
    "seconds": 65.0,
    "roles": {"actor": {"steps_acted": 5000}},
    "ranks": [
        {"rank": 1, "label": "trainer-default-0", "host": "here", "alive": True},
        {"rank": 2, "label": "actor-0", "host": "here", "alive": False},
    ],
}


def written_run(root: Path, name: str, *, seed: int = 1, status: Mapping[str, Any] = STATUS) -> RunPaths:
    """A run with one attempt that has reported and not ended; nobody holds it."""
    paths = create_run(root, name, "catch", SPEC.format(seed=seed), seed, ["srlhpc", "run"])
    attempt = paths.new_attempt()
    write_json(attempt.attempt, {"serial": False, "ranks": 3, "checkpoint": None})
    for rank, label in enumerate(("coordinator-0", "trainer-default-0", "actor-0")):
        attempt.log(rank, label).write_text(f"hello from {label}\n")
    write_json(paths.status, status)
    return paths


def last(paths: RunPaths) -> AttemptPaths:
    attempt = paths.last_attempt()
    assert attempt
    return attempt


def end(paths: RunPaths, state: str, reason: str, message: str = "") -> None:
    write_json(last(paths).end, {"state": state, "reason": reason, "message": message, "time": 0.0})


def hold(paths: RunPaths, identity: ProcessIdentity | None = None) -> None:
    """This process, or another, runs it."""
    identity = identity or ProcessIdentity.own()
    write_json(paths.lease, {**identity.to_json(), "attempt": last(paths).number, "renewed": 0.0})


def dead() -> ProcessIdentity:
    return ProcessIdentity(ProcessIdentity.own().host, 2**22 + 1, "boot:1")


def write_metrics(paths: RunPaths, points: Sequence[tuple[float, float | None]]) -> None:
    lines = [
        json.dumps({"steps": steps, "seconds": steps / 10, "episodes": place, "return_mean": value})
        for place, (steps, value) in enumerate(points, start=1)
    ]
    paths.metrics.write_text("".join(f"{line}\n" for line in lines))
