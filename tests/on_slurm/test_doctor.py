"""`srlhpc doctor` against the lab: healthy, and with each fault that can be made there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from srlhpc.slurm.commands import run_slurm
from tests.on_slurm.runs_on_slurm import LAB_PROFILE, ROOT, lab_daemon, shared_memory_of_nodes

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.slow,
    pytest.mark.usefixtures("lab", "nothing_stays"),
    pytest.mark.timeout(240),
]

LOW = "mpi: mpich\nroles: {{default: {{partition: low}}}}\nsetup: [{setup}]\n"
COMMAND = [sys.executable, "-m", "srlhpc.cli.main", "doctor"]


def jobs() -> set[str]:
    return set(run_slurm(["squeue", "--noheader", "--format=%i"]).stdout.split())


@pytest.fixture
def nothing_stays(lab: str, tmp_path: Path) -> Iterator[None]:
    """No job, no file in the run folder, nothing in the nodes' /dev/shm."""
    before, files = jobs(), shared_memory_of_nodes()
    (tmp_path / "runs").mkdir()
    yield
    assert jobs() <= before
    assert list((tmp_path / "runs").iterdir()) == []
    assert shared_memory_of_nodes() <= files


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [*COMMAND, "--root", str(folder / "runs"), *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def doctor(folder: Path, profile: str | None = None, *arguments: str) -> tuple[int, dict[str, str]]:
    """The exit code, and `level found; remedy` by what was looked at."""
    where: list[str] = []
    if profile is not None:
        (folder / "profile.yaml").write_text(profile)
        where = ["--cluster", str(folder / "profile.yaml")]
    done = start(folder, *where, *arguments)
    said, complaints = done.communicate(timeout=300)
    assert "Traceback" not in said + complaints
    lines = [line.split(maxsplit=1) for line in said.splitlines()]
    found = {}
    for level, rest in lines:
        what, _, text = rest.partition(":")
        found[what] = f"{level} {text.strip()}"
    assert found, complaints
    return done.returncode, found


def test_healthy_cluster_has_only_the_fake_gpus_as_a_warning(tmp_path: Path) -> None:
    code, found = doctor(tmp_path, LAB_PROFILE)
    warned = {what for what, text in found.items() if not text.startswith("ok ")}
    # The lab's KillWait is short.
    assert warned == {"GPUs", "limits"}, found
    assert "has no CUDA: trainers would compute on the CPU" in found["GPUs"]
    assert "6 ranks on 3 nodes in one world (MPICH" in found["MPI"]
    assert "may be requeued" in found["requeue"]
    assert found["HDF5 file locks"].endswith("here and on gpu1, gpu2, cpu1")
    assert code == 0


def test_step_without_a_plugin_counts_one_rank_of_six_and_names_the_right_plugin(tmp_path: Path) -> None:
    code, found = doctor(tmp_path, LOW.format(setup="") + "srun_mpi: none\n")
    assert found["MPI"].startswith("fault MPI started 1 rank of 6 (MPICH")
    assert found["MPI"].endswith("set srun_mpi: pmi2 in the profile")
    assert code == 3


def test_plugin_of_another_mpi_names_the_right_one(tmp_path: Path) -> None:
    code, found = doctor(tmp_path, LOW.format(setup="") + "srun_mpi: pmix\n")
    assert found["MPI"].startswith("fault ")
    assert found["MPI"].endswith("set srun_mpi: pmi2 in the profile")
    assert code == 3


def test_missing_interpreter_is_named(tmp_path: Path) -> None:
    code, found = doctor(tmp_path, LOW.format(setup="") + "python: /no/such/python\n")
    assert found["Python"].startswith("fault /no/such/python does not run on the nodes: ")
    assert code == 3


def test_few_open_files_and_another_library_are_reported_of_badly_set_up_nodes(tmp_path: Path) -> None:
    other = tmp_path / "other" / "numpy-9.9.9.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 9.9.9\n")
    code, found = doctor(tmp_path, LOW.format(setup=f"ulimit -n 64, 'export PYTHONPATH={other.parent}:{ROOT}'"))
    assert found["open files"].startswith("fault at most 64 on ")
    assert "has numpy 9.9.9, not " in found["Python"]
    assert code == 3


@contextmanager
def covered(node: str, target: str, size: str) -> Iterator[None]:
    """A small file system over a folder of one node."""
    inside = ["nsenter", "-t", str(lab_daemon(f"slurmd-{node}")), "-m"]
    subprocess.run([*inside, "mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "tmpfs", target], check=True)
    try:
        yield
    finally:
        subprocess.run([*inside, "umount", "-l", target], check=True)


def test_node_with_tiny_shared_memory_is_named(tmp_path: Path) -> None:
    with covered("cpu1", "/dev/shm", "1m"):
        code, found = doctor(tmp_path, LOW.format(setup="") + "sbatch: {nodelist: 'cpu1'}\n")
    assert re.match(r"fault [01] MiB of 1 MiB free on cpu1, too little for MPI to start; ", found["/dev/shm"])
    assert code == 3


def test_refused_job_gives_the_message_of_slurm_and_a_remedy(tmp_path: Path) -> None:
    code, found = doctor(tmp_path, "mpi: mpich\nroles: {default: {partition: nowhere}}\n")
    assert found["test job"].startswith("fault refused: ")
    assert "set partition in the cluster profile to one that `sinfo -s` lists" in found["test job"]
    assert code == 3


@pytest.fixture
def busy(lab: str) -> Iterator[None]:
    """A job that has all nodes of partition cpu."""
    held = ["sbatch", "--parsable", "-p", "cpu", "-N2", "--exclusive", "--time=5", "-o", "/dev/null"]
    job = run_slurm([*held, "--wrap=exec sleep 280"]).stdout.strip()
    yield
    run_slurm(["scancel", job])
    limit = time.monotonic() + 60
    while job in jobs() and time.monotonic() < limit:
        time.sleep(0.2)


@pytest.mark.usefixtures("busy")
def test_job_that_waits_too_long_is_a_warning_with_the_reason_of_slurm(tmp_path: Path) -> None:
    code, found = doctor(tmp_path, LOW.format(setup="").replace("low", "cpu"), "--wait", "2")
    assert found["test job"].startswith("warning job ")
    assert "did not start within 2 s (" in found["test job"]
    assert code == 0


@pytest.mark.usefixtures("busy")
def test_job_of_a_terminated_doctor_goes_too(tmp_path: Path) -> None:
    (tmp_path / "profile.yaml").write_text(LOW.format(setup="").replace("low", "cpu"))
    running = start(tmp_path, "--cluster", str(tmp_path / "profile.yaml"))
    limit = time.monotonic() + 60
    while "srlhpc-doctor" not in run_slurm(["squeue", "-h", "-o", "%j"]).stdout:
        assert time.monotonic() < limit
        time.sleep(0.1)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    assert running.returncode == 130


def test_stopped_controller_is_a_fault_and_nothing_is_submitted(tmp_path: Path) -> None:
    daemon = lab_daemon("slurmctld")
    os.kill(daemon, signal.SIGSTOP)
    try:
        code, found = doctor(tmp_path, LOW.format(setup=""))
    finally:
        os.kill(daemon, signal.SIGCONT)
    assert found["Slurm"].startswith("fault does not answer: ")
    assert "test job" not in found
    assert code == 3


def test_missing_configuration_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        changed.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
        code, found = doctor(tmp_path, LOW.format(setup=""))
    assert f"SLURM_CONF names {tmp_path}/slurm.conf, which does not exist" in found["Slurm"]
    assert code == 3


def test_full_run_folder_is_a_fault_and_starts_no_job(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=True)
    try:
        code, found = doctor(tmp_path, LOW.format(setup=""))
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    assert found["run folder"].startswith(f"fault {folder} cannot hold a run: no space left; ")
    assert "test job" not in found
    assert code == 3
