"""What status, why, logs and cancel say in the phases of a job, on the real lab."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from srlhpc.slurm.commands import run_slurm
from tests.on_slurm.runs_on_slurm import ENDLESS, PROFILE, SlurmRun

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("lab"), pytest.mark.timeout(240)]

SMALL = ("actors.ranks=1", *ENDLESS)
GPU_NODE = """\
mpi: mpich
signal_lead_seconds: 40
roles:
  default: {partition: gpu}
  trainer: {gpus_per_rank: 1}
  policy_server: {gpus_per_rank: 0.5}
"""


def test_why_says_how_to_release_a_held_job_and_cancel_is_remembered(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*SMALL, profile=PROFILE + "sbatch: {nice: 100}\n", time=10)
    run_slurm(["scontrol", "hold", run.job])
    run.wait(lambda: run.state["state"] in ("held", "running"))
    if run.state["state"] == "running":
        run_slurm(["scontrol", "requeuehold", run.job])
        run.wait_for_state("held")
    assert f"scontrol release {run.job}" in run.command("why").stdout
    assert "left the queue" in run.command("cancel").stderr
    run.wait_for_state("cancelled")
    assert "srlhpc resume r" in run.command("why").stdout


def test_job_that_asks_for_too_much_time_is_pending_and_why_says_never(submit: Callable[..., SlurmRun]) -> None:
    run = submit(*SMALL, time=300)
    run.wait(lambda: run.state["reason"] == "PartitionTimeLimit")
    assert " pending (PartitionTimeLimit) " in run.command("status").stdout
    assert "it will never start" in run.command("why").stdout


def test_ranks_that_share_gpus_see_each_its_own(submit: Callable[..., SlurmRun]) -> None:
    size = ("trainers.device=cpu", "policy_servers.device=cpu", "policy_servers.ranks=2", "stop.updates=2")
    run = submit(*size, profile=GPU_NODE)
    run.wait_for_state("finished", seconds=120.0)
    seen = {path.stem.split("-", 2)[2]: path.read_text() for path in last_logs(run)}
    for label, gpus in (("trainer-default-0", "0"), ("policy_server-0", "1"), ("policy_server-1", "1")):
        assert f"GPUs: {gpus}\n" in seen[label]
    assert "GPUs: none\n" in seen["actor-0"]
    assert "all ranks are up" in seen["coordinator-0"]
    assert "attempt ends (updates)" in seen["coordinator-0"]


def test_why_names_a_trainer_that_was_killed_for_good_its_host_and_slurms_verdict(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*SMALL, profile=PROFILE + "restarts_in_place: 0\nrequeue: false\n")
    run.wait_until_trains()
    host = run.status["ranks"][0]["host"]
    os.kill(run.pid_of("trainer"), signal.SIGKILL)
    run.wait_for_state("failed")
    run.wait(lambda: not run_slurm(["squeue", "-h", "-j", run.job]).stdout.strip())
    said = run.command("why").stdout
    assert f"trainer-default-0 (rank 1, host {host}) was killed by signal 9 (SIGKILL)" in said
    assert f"Slurm: job {run.job}: FAILED, exit code 1:0" in said
    assert "srlhpc resume r" in said


def test_ranks_that_start_slower_than_the_profile_allows_fail_the_run_and_why_says_so(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*SMALL, profile=PROFILE + "start_seconds: 1\nrestarts_in_place: 0\nrequeue: false\n")
    run.wait_for_state("failed")
    assert re.search(r"not all ranks (were up after|answered within) 1 s", run.command("why").stdout)


def test_killed_foreman_fails_the_run_with_the_verdict_of_slurm(submit: Callable[..., SlurmRun]) -> None:
    run = submit(*SMALL, profile=PROFILE + "requeue: false\n")
    run.wait_until_trains()
    os.kill(foreman_of(run), signal.SIGKILL)
    run.wait_for_state("failed")
    said = run.command("why").stdout
    assert "everything was killed, the foreman included" in said
    assert f"job {run.job}: FAILED" in said


def test_rank_with_another_library_is_stopped_at_once_and_why_says_which(
    submit: Callable[..., SlurmRun], tmp_path: Path
) -> None:
    """One of two nodes has another numpy, by its metadata."""
    other = tmp_path / "other" / "numpy-0.0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.0.1\n")
    code = f"import os, sys\nif os.uname().nodename == 'cpu2': sys.path.insert(0, {str(other.parent)!r})\n"
    (tmp_path / "sitecustomize.py").write_text(code)
    profile = PROFILE.replace("partition: low", "partition: cpu, nodes: 2")
    run = submit(*SMALL, profile=profile + f"setup: ['export PYTHONPATH={tmp_path}:$PYTHONPATH']\n")
    run.wait_for_state("failed", seconds=120.0)
    said = run.command("why").stdout
    assert re.search(
        r"ranks differ in numpy: numpy \S+ on rank 0 \(cpu1\), but numpy 0.0.1 on rank 2 \(cpu2\)", said
    ), said
    assert "Give all nodes the same installation" in said
    reasons = [run.end(number)["message"] for number in run.paths.attempt_numbers()]
    assert len([reason for reason in reasons if "ranks differ" in reason]) == 1


def last_logs(run: SlurmRun) -> list[Path]:
    attempt = run.paths.last_attempt()
    assert attempt
    return sorted(attempt.logs.glob("rank-*.log"))


def foreman_of(run: SlurmRun) -> int:
    """The process of the batch script."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"submitit.core._submit" in words and str(run.paths.slurm_folder).encode() in words:
            return int(folder.name)
    raise AssertionError("no foreman")
