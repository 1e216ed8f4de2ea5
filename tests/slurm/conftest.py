"""The Slurm lab that these tests use: the one that `make slurm-lab` started, or that SLURM_CONF names."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

CONFIGURATION = Path(__file__).with_name("lab") / ".state" / "etc" / "slurm.conf"


@pytest.fixture(scope="session")
def configuration() -> str:
    """The lab's slurm.conf."""
    path = os.environ.get("SLURM_CONF") or (str(CONFIGURATION) if CONFIGURATION.exists() else None)
    if path is None:
        pytest.skip("no Slurm lab; start it: make slurm-lab")
    try:
        done = subprocess.run(
            ["scontrol", "ping"], env={**os.environ, "SLURM_CONF": path}, capture_output=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"the Slurm lab does not answer ({error}); start it: make slurm-lab")
    if done.returncode:
        pytest.skip("the Slurm lab does not answer; start it: make slurm-lab")
    return path


@pytest.fixture
def lab(configuration: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The lab, for the commands of one test."""
    monkeypatch.setenv("SLURM_CONF", configuration)
    return configuration
