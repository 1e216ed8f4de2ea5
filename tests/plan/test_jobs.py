"""Every job that is shipped can start: its environment is there, its roles fit each other, and every batch is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.errors import UserError
from srlhpc.plan.planner import make_plan
from srlhpc.specs.load import load_experiment
from srlhpc.specs.probe import probe_spaces

JOBS = sorted((Path(__file__).parents[2] / "jobs").glob("*.yaml"))


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_shipped_job_has_a_plan(path: Path) -> None:
    spec = load_experiment(path)
    try:
        spaces = probe_spaces(spec.environment)
    except UserError as error:
        if "which is not installed here" not in str(error):
            raise
        pytest.skip(str(error))
    assert make_plan(spec, spaces).trained_policies
