"""The Slurm lab that these tests use: the one that SLURM_CONF names, else the one that `make slurm-lab` has started."""

from __future__ import annotations

import os

import pytest

from tests.conftest import LAB_CONFIGURATION


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> str:
    """The lab, for the commands of one test."""
    path = os.environ.get("SLURM_CONF") or str(LAB_CONFIGURATION)
    monkeypatch.setenv("SLURM_CONF", path)
    return path
