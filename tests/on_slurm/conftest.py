"""Tests on a Slurm lab: commands go there, and nothing of a run stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.on_slurm.labs import lab_of

if TYPE_CHECKING:
    from tests.on_slurm.runs_on_slurm import SlurmRun


@pytest.fixture
def lab(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The lab, for the commands of one test."""
    path = lab_of(request.node.nodeid)
    assert path
    monkeypatch.setenv("SLURM_CONF", path)
    return path


@pytest.fixture
def submit(tmp_path: Path, lab: str) -> Iterator[Callable[..., SlurmRun]]:
    """Submits a run; its jobs are cancelled at the end, and nothing of them may stay on any node."""
    from tests.on_slurm.runs_on_slurm import SlurmRun, shared_memory_of_nodes

    made: list[SlurmRun] = []
    before = shared_memory_of_nodes()

    def start(*overrides: str, **how: Any) -> SlurmRun:
        made.append(SlurmRun(tmp_path, *overrides, **how))
        return made[-1]

    yield start
    for run in made:
        run.clear()
        assert run.processes() == []
    assert shared_memory_of_nodes() <= before
