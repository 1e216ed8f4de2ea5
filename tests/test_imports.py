"""What a job file and an actor may load: thousands of actors start, so neither torch nor a simulator by accident."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment_conformance import SIMULATORS

ROOT = Path(__file__).parents[1]
JOBS = sorted(path.relative_to(ROOT) for path in (ROOT / "jobs").glob("*.yaml"))
WITHOUT_TORCH = [
    "srlhpc.environment",
    "srlhpc.import_path",
    *(
        f"srlhpc.{path.parent.name}.{path.stem}"
        for folder in ("specs", "comm")
        for path in sorted((ROOT / "srlhpc" / folder).glob("*.py"))
        if path.stem not in ("__init__", "process_group")
    ),
    "srlhpc.data.layout",
    "srlhpc.data.blocks",
    "srlhpc.roles.acting.actor",
    "srlhpc.roles.role",
    "srlhpc.roles.acting.recorder",
    "srlhpc.roles.acting.episode_recorder",
    "srlhpc.data.minari_file",
    "srlhpc.roles.coordinating.coordinator",
    "srlhpc.plan.planner",
    "srlhpc.ranks.rank",
    "srlhpc.ranks.actors",
    "srlhpc.launch.foreman",
    "srlhpc.runs.paths",
    "srlhpc.slurm.placement",
    "srlhpc.launch.submission",
    "srlhpc.bench.streams",
    "srlhpc.bench.inference",
    "srlhpc.bench.ring",
    "srlhpc.cli.bench",
    "srlhpc.doctor.examination",
    "srlhpc.doctor.node_check",
    "srlhpc.doctor.node_look",
    "srlhpc.cli.cluster",
    "srlhpc.cli.dry_run",
    "srlhpc.cli.spec",
    "srlhpc.cli.submit",
]


def loaded_by(statement: str, suspects: list[str]) -> str:
    """Those of `suspects` that a fresh interpreter has loaded after `statement`."""
    report = f"import sys; print(*(name for name in {suspects} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{report}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_resolving_a_job_loads_neither_torch_nor_a_simulator(job: Path) -> None:
    statement = f"from srlhpc.specs.load import load_experiment; load_experiment({str(job)!r})"
    assert loaded_by(statement, ["torch", *SIMULATORS]) == ""


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_actors_and_quick_commands_load_no_torch(module: str) -> None:
    assert loaded_by(f"import {module}", ["torch"]) == ""


def test_a_loaded_module_is_found() -> None:
    assert loaded_by("import json", ["json", "torch"]) == "json"
