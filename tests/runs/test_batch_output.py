"""What a batch script that ended too early said, and what helps: real scripts, run by bash as Slurm does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from srlhpc.launch.submission import foreman_command
from srlhpc.runs.batch_output import BatchOutput, batch_output
from srlhpc.runs.paths import RunPaths
from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.slurm.sbatch import sbatch_text
from srlhpc.specs.cluster import ClusterProfile

MODULE = "module() { echo \"ERROR: Unable to locate a modulefile for '$2'\" >&2; return 1; }; export -f module; "


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    made = RunPaths(tmp_path / "r")
    made.slurm_folder.mkdir(parents=True)
    return made


def run(paths: RunPaths, *, before: str = "", command: str | None = None, **profile: Any) -> BatchOutput:
    """Runs the batch script of a profile; gives its last words as `why` sees them."""
    cluster = ClusterProfile.model_validate(profile)
    command = command or foreman_command(cluster, paths.slurm_folder)
    component = Component({}, 0, 1, 1, (1,), 1, 0)
    text = sbatch_text(Allocation((component,), 10), cluster, name="r", folder=paths.slurm_folder, command=command)
    script = paths.folder / "slurm_script"
    script.write_text(text)
    with open(paths.slurm_folder / "7_0_log.err", "a") as err:
        done = subprocess.run(["bash", "-c", f"{before}exec bash {script}"], stdout=err, stderr=err, cwd=paths.folder)
    assert done.returncode != 0
    said = batch_output(paths, "7", cluster.interpreter)
    assert said is not None
    return said


def test_missing_python_shows_its_line_and_the_field(paths: RunPaths) -> None:
    said = run(paths, python="/nowhere/bin/python")
    assert said.line == "/nowhere/bin/python: No such file or directory"
    assert said.advice.startswith("correct `python` in the cluster profile")


def test_python_that_cannot_be_run_shows_its_line_and_the_field(paths: RunPaths, tmp_path: Path) -> None:
    (tmp_path / "python").write_text("#!/nowhere/interpreter\n")
    (tmp_path / "python").chmod(0o755)
    assert "correct `python`" in run(paths, python=str(tmp_path / "python")).advice


def test_missing_package_shows_pythons_last_line(paths: RunPaths) -> None:
    said = run(paths, command=f"{sys.executable} -c 'import no_such_package'")
    assert said.line == "ModuleNotFoundError: No module named 'no_such_package'"
    assert said.advice.startswith(f"install srlhpc and what the job needs for {sys.executable}")


def test_module_that_cannot_be_loaded_ends_the_job(paths: RunPaths) -> None:
    said = run(paths, before=MODULE, modules=["gcc/99"], setup=["touch later"], command="touch later")
    assert said.line == "srlhpc: module load gcc/99 failed"
    assert "ERROR: Unable to locate a modulefile for 'gcc/99'" in said.lines
    assert said.advice.startswith("correct `modules`")
    assert not (paths.folder / "later").exists()


def test_failed_set_up_line_is_named_and_the_next_ones_run(paths: RunPaths) -> None:
    setup = ["[ -e /nowhere ] && true", "if false; then", "  true", "fi", "source '/no such/env.sh'", "touch later"]
    said = run(paths, setup=setup, command=f"{sys.executable} -c 'raise SystemExit(1)'")
    assert said.line == "srlhpc: set-up line failed with exit code 1: source '/no such/env.sh'"
    assert [line for line in said.lines if line.startswith("srlhpc: ")] == [said.line]
    assert said.advice.startswith("correct `setup`")
    assert (paths.folder / "later").exists()


def test_failed_set_up_line_and_python_are_both_shown(paths: RunPaths) -> None:
    deep = 'def f(n):\\n f(n - 1) if n else __import__("no_such_package")\\nf(9)'
    said = run(paths, setup=["false"], command=f"{sys.executable} -c \"$(printf '{deep}')\"")
    assert said.line.startswith("ModuleNotFoundError")
    assert said.lines[0] == "srlhpc: set-up line failed with exit code 1: false"


def test_full_disk_is_named(paths: RunPaths) -> None:
    said = run(paths, command="sh -c 'echo \"OSError: [Errno 28] No space left on device\" >&2; echo bye; exit 1'")
    assert said.line.endswith("No space left on device")
    assert said.advice == f"make room where {paths.folder} is, then resume"


def test_output_of_a_requeued_job_counts_since_its_requeue(paths: RunPaths) -> None:
    log = paths.slurm_folder / "7_0_log.err"
    log.write_text("srlhpc: set-up line failed with exit code 1: x\nrequeueing job 7 (preemption); bla\n")
    assert batch_output(paths, "7", "python") is None
    assert run(paths, python="/nowhere/python").lines == ("/nowhere/python: No such file or directory",)


def test_job_that_wrote_nothing_has_no_last_line(paths: RunPaths) -> None:
    assert batch_output(paths, "7", "python") is None
