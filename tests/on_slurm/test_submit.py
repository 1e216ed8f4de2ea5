"""Submitting to a real Slurm."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.slurm.commands import run_slurm
from srlhpc.slurm.sbatch import sbatch_text
from srlhpc.specs.cluster import ClusterProfile, load_cluster

ROOT = Path(__file__).parents[2]
JOB = "jobs/catch.yaml"

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("lab")]


def srlhpc(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    statement = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from srlhpc.cli.main import main; main()"
    return subprocess.run([sys.executable, "-c", statement, *arguments], cwd=folder, capture_output=True, text=True)


def jobs() -> set[str]:
    return set(run_slurm(["squeue", "--noheader", "--format=%i"]).stdout.split())


@pytest.fixture
def cleared(lab: str) -> Iterator[None]:
    """Cancels what a test has submitted."""
    before = jobs()
    yield
    for job in {job.partition("+")[0] for job in jobs() - before}:
        run_slurm(["scancel", job])
    limit = time.monotonic() + 30
    while jobs() - before and time.monotonic() < limit:
        time.sleep(0.2)


def test_dry_run_asks_slurm_for_the_start_and_adds_no_job(tmp_path: Path) -> None:
    before = jobs()
    done = srlhpc("submit", JOB, "--cluster", "lab", "--dry-run", "--root", str(tmp_path / "runs"))
    assert re.search(r"start estimate: Job \d+ to start at 20\d\d-", done.stdout), done.stdout + done.stderr
    assert jobs() <= before
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("cleared")
def test_submit_makes_the_heterogeneous_job_of_the_plan(tmp_path: Path) -> None:
    arguments = ["--set", "actors.ranks=4", "--name", "mine", "--root", str(tmp_path)]
    done = srlhpc("submit", JOB, "--cluster", "lab", *arguments)
    assert done.returncode == 0, done.stderr
    job = re.search(r"job (\d+)", done.stderr)
    assert job is not None
    shown = run_slurm(["scontrol", "show", "job", job[1]]).stdout
    assert re.findall(r"Partition=(\w+)", shown) == ["gpu", "cpu"]
    assert re.findall(r"HetJobOffset=(\d)", shown) == ["0", "1"]
    assert "JobName=mine" in shown


@pytest.mark.usefixtures("cleared")
def test_later_jobs_of_a_chain_depend_on_the_ones_before(tmp_path: Path) -> None:
    done = srlhpc("submit", JOB, "--cluster", "lab", "--chain", "2", "--name", "mine", "--root", str(tmp_path))
    assert done.returncode == 0, done.stderr
    first, second = re.findall(r"\d+", done.stderr.rpartition("job ")[2])
    assert f"Dependency=afterany:{first}" in run_slurm(["scontrol", "show", "job", second]).stdout


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ("roles: {default: {partition: nowhere}}", "set partition in the cluster profile"),
        ("roles: {default: {constraint: liquid}}", "set constraint in the cluster profile"),
        ("roles: {default: {partition: gpu, gpus_per_rank: 9}}", "no node has the CPUs, GPUs, GPU type or memory"),
        ("roles: {default: {partition: gpu, gpus_per_rank: 1, gpu_type: a100}}", "lower ranks_per_node or what"),
    ],
)
@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_submission_that_slurm_refuses_gives_its_message_a_remedy_and_no_run(
    tmp_path: Path, profile: str, words: str, dry_run: tuple[str, ...]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(profile)
    before = jobs()
    done = srlhpc("submit", JOB, "--cluster", str(path), "--root", str(tmp_path / "runs"), *dry_run)
    assert done.returncode == 3, done.stdout + done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert jobs() <= before
    assert not list(tmp_path.rglob("run.json"))


def test_cluster_init_writes_a_profile_that_submits(tmp_path: Path) -> None:
    done = srlhpc("cluster", "init", "mine", folder=tmp_path)
    assert done.stdout.strip() == "clusters/mine.yaml", done.stderr
    profile = load_cluster(str(tmp_path / "clusters" / "mine.yaml"))
    assert (profile.role("trainer").partition, profile.role("actor").partition) == ("gpu", "cpu")
    tried = srlhpc("submit", str(ROOT / JOB), "--cluster", "mine", "--dry-run", folder=tmp_path)
    assert "start estimate: Job" in tried.stdout, tried.stderr


def test_cluster_init_refuses_a_file_that_exists(tmp_path: Path) -> None:
    srlhpc("cluster", "init", "mine", folder=tmp_path)
    done = srlhpc("cluster", "init", "mine", folder=tmp_path)
    assert done.returncode == 2
    assert "clusters/mine.yaml exists; replace it by --force" in done.stderr


def test_cluster_show_gives_free_cpus_and_gpus_of_each_partition() -> None:
    rows = [line.split() for line in srlhpc("cluster", "show", "lab").stdout.splitlines()]
    partitions = {row[0]: row for row in rows if row}
    assert partitions["cpu*"][2].endswith("/16")
    assert partitions["gpu"][3].endswith("/4")


@pytest.mark.usefixtures("cleared")
def test_slurm_reads_options_with_quotes_and_blanks_as_they_were_written(tmp_path: Path) -> None:
    comment = 'it\'s "mine" # C:\\x & more'
    options = {"comment": comment, "exclude": "cpu1,gpu[1-2]", "nice": "7"}
    component = Component({"partition": "low", **options}, 0, 1, 1, (1,), 1, 0)
    allocation = Allocation((component,), 60)
    text = sbatch_text(allocation, ClusterProfile(), name="quoted", folder=tmp_path / "my runs", command="true")
    job = run_slurm(["sbatch", "--parsable", "--hold"], text=text).stdout.strip()
    shown = run_slurm(["scontrol", "show", "job", job]).stdout
    assert f"Comment={comment}" in shown
    assert "ExcNodeList=cpu1,gpu[1-2]" in shown
    assert f"StdErr={tmp_path}/my runs/{job}_0_log.err" in shown
