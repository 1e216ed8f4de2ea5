"""What happens to tests that this machine cannot serve."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEST = "tests/on_slurm/test_submit.py::test_cluster_show_gives_free_cpus_and_gpus_of_each_partition"


def run_slurm_test(**environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-m", "slurm", "-p", "no:cacheprovider", TEST]
    inherited = {key: value for key, value in os.environ.items() if key != "SRLHPC_TESTS_REQUIRE"}
    return subprocess.run(command, cwd=ROOT, env=inherited | environment, capture_output=True, text=True)


@pytest.fixture
def silent_lab(tmp_path: Path) -> dict[str, str]:
    """A machine with Slurm's programs whose controller does not answer."""
    (tmp_path / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "scontrol").chmod(0o755)
    (tmp_path / "slurm.conf").touch()
    return {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_CONF": str(tmp_path / "slurm.conf")}


def test_slurm_test_without_slurm_is_skipped_with_the_reason(tmp_path: Path) -> None:
    done = run_slurm_test(PATH=str(tmp_path))
    assert done.returncode == 0, done.stdout
    assert "no Slurm on this machine" in done.stdout


def test_slurm_test_beside_a_silent_lab_is_skipped_with_the_reason(silent_lab: dict[str, str]) -> None:
    done = run_slurm_test(**silent_lab)
    assert done.returncode == 0, done.stdout
    assert "does not answer; start it: make slurm-lab" in done.stdout


def test_required_slurm_test_that_is_skipped_fails_with_the_reason(silent_lab: dict[str, str]) -> None:
    done = run_slurm_test(**silent_lab, SRLHPC_TESTS_REQUIRE="mpi slurm")
    assert done.returncode == 1, done.stdout
    assert "does not answer; start it: make slurm-lab; SRLHPC_TESTS_REQUIRE says" in done.stdout
