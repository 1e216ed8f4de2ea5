"""What every process of an attempt reads before it starts: spec, spaces, plan, and the checkpoint to go on from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from srlhpc.environment import Spaces
from srlhpc.plan.plan import Plan
from srlhpc.plan.planner import make_plan
from srlhpc.runs.checkpoints import checkpoint_named
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.specs.load import load_experiment


def read_plan(paths: RunPaths, attempt: AttemptPaths, *, serial: bool) -> Plan:
    """The attempt's plan, worked out again from its spec and spaces."""
    spaces = Spaces.from_json(json.loads(attempt.spaces.read_text()))
    return make_plan(load_experiment(paths.spec), spaces, serial=serial)


def checkpoint_path(paths: RunPaths, attempt: AttemptPaths) -> Path | None:
    """The checkpoint that the attempt goes on from; None for the beginning."""
    name = _attempt(attempt).get("checkpoint")
    return checkpoint_named(paths, name) if name else None


def read_restored(paths: RunPaths, attempt: AttemptPaths) -> dict[str, Any] | None:
    """The tree of the checkpoint that the attempt resumes from; None at the beginning."""
    path = checkpoint_path(paths, attempt)
    if path is None:
        return None
    from srlhpc.data.checkpoint import read_checkpoint

    return read_checkpoint(path)


def _attempt(attempt: AttemptPaths) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(attempt.attempt.read_text())
    return content
