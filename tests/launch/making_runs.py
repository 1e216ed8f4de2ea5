"""Small runs for tests: a spec as a mapping becomes a run's folder with an attempt, without the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import read_json, write_json
from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.data.checkpoint_names import name_of
from srlhpc.data.segment_folder import REPLAY, runs_of
from srlhpc.plan.plan import Plan
from srlhpc.plan.planner import make_plan
from srlhpc.runs.creation import create_run
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.load import dump_experiment
from srlhpc.specs.probe import probe_spaces

Settings = Mapping[str, Any]


def settings(environment: Settings, *, stop: Settings, **changes: Any) -> dict[str, Any]:
    """A small job with one policy `default`; `changes` replace keys of the policy or of the top level."""
    policy: dict[str, Any] = {
        "network": {"kind": "mlp", "hidden": [16]},
        "algorithm": {"kind": "ppo", "epochs": 1, "minibatches": 2},
        "batch": {"fragments": 8, "fragment_steps": 8},
    }
    policy |= {key: changes.pop(key) for key in ("network", "algorithm", "batch", "normalize") if key in changes}
    policy |= {key: changes.pop(key) for key in ("max_policy_lag", "replay") if key in changes}
    job = {
        "seed": 3,
        "environment": dict(environment),
        "policies": {"default": policy},
        "actors": {"ranks": 1, "ring": 2, "environments": 4},
        "stop": dict(stop),
    }
    return job | changes


def make_run(root: Path, job: Settings, name: str = "run") -> RunPaths:
    spec = ExperimentSpec.model_validate(job)
    return create_run(root, name, "job", dump_experiment(spec), spec.seed, ["test"])


def change_job(paths: RunPaths, job: Settings) -> None:
    paths.spec.write_text(dump_experiment(ExperimentSpec.model_validate(job)))


def make_attempt(
    paths: RunPaths, job: Settings, checkpoint: Path | None = None, *, serial: bool = True
) -> tuple[AttemptPaths, Plan]:
    """The next attempt, which goes on from a checkpoint if one is given."""
    spec = ExperimentSpec.model_validate(job)
    spaces = probe_spaces(spec.environment)
    attempt = paths.new_attempt()
    write_json(attempt.attempt, {"serial": serial, "checkpoint": checkpoint.name if checkpoint else None})
    write_json(attempt.spaces, spaces.to_json())
    return attempt, make_plan(spec, spaces, serial=serial)


def outcome(attempt: AttemptPaths) -> dict[str, Any]:
    return read_json(attempt.outcome) or {}


def checkpoint(paths: RunPaths, updates: int) -> Path:
    return paths.checkpoints / name_of(updates)


def tree_of(paths: RunPaths, updates: int) -> dict[str, Any]:
    """What is in a checkpoint; blocks of replay by number, however they are spread over files."""
    tree = read_checkpoint(checkpoint(paths, updates))
    for part in tree.get(REPLAY, {}).values():
        part["segments"] = _blocks(paths, part)
    return tree


def _blocks(paths: RunPaths, part: Mapping[str, Any]) -> dict[str, Any]:
    store, found = part["store"], {}
    oldest = store["inserted_blocks"] - len(store["generations"])
    for run in runs_of(part, paths.replay):
        for place, group in enumerate(run.group):
            block = {"group": group, "sequence": run.sequence[place]}
            fields = {name: array[place] for name, array in run.fields.items()}
            if run.first + place >= oldest:
                found[str(run.first + place)] = block | fields
    return found
