"""Runs on the lab for tests: submit, wait for what should happen, look, clean up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import read_json, write_atomically
from srlhpc.data.checkpoint_names import checkpoint_files, updates_of
from srlhpc.errors import ClusterError
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.processes import processes_of
from srlhpc.runs.state import job_ids, run_state
from srlhpc.slurm.commands import run_slurm
from srlhpc.specs.load import dump_experiment, load_experiment

ROOT = Path(__file__).parents[2]
PROFILE = """\
mpi: mpich
signal_lead_seconds: 40
time_minutes: 10
roles: {default: {partition: low}}
"""
LAB_PROFILE = (ROOT / "jobs" / "clusters" / "lab.yaml").read_text()
UNHURRIED = "environment.wrappers=[tests.on_slurm.slow_steps:SlowSteps]"
"""Leaves most of the cores to other tests."""
ENDLESS = (
    "stop.return_mean=null",
    "stop.steps=1000000000",
    "trainers.device=cpu",
    "checkpoint.every_seconds=2",
    UNHURRIED,
)


def lab_state() -> Path:
    """Folder of the state of the lab in use."""
    return Path(os.environ["SLURM_CONF"]).parents[1]


def lab_daemon(name: str) -> int:
    """Process of a daemon of the lab in use, for example slurmd-cpu1."""
    return int((lab_state() / "pids" / name).read_text())


def lab_script(name: str, *arguments: str) -> None:
    """Runs a script of the lab in use."""
    command = [str(Path(__file__).with_name("lab") / name), *arguments]
    environment = os.environ | {"LAB_STATE": str(lab_state())}
    subprocess.run(command, check=True, capture_output=True, env=environment)


def srlhpc(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "srlhpc.cli.main", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=90)


def shared_memory_of_nodes() -> set[str]:
    """`NODE/FILE` of all that is in /dev/shm of the lab's nodes, each of which has its own."""
    found = set()
    for path in (lab_state() / "pids").glob("slurmd-*"):
        folder = Path("/proc") / path.read_text().strip() / "root" / "dev" / "shm"
        found |= {f"{path.name.removeprefix('slurmd-')}/{file.name}" for file in folder.iterdir()}
    return found


class SlurmRun:
    """A run as a job.

    Args:
        root: folder of all runs.
        overrides: of the spec.
        profile: text of the cluster profile.
        time: time limit in minutes.
        job: what to train.
        chain: jobs that follow each other.
    """

    def __init__(
        self,
        root: Path,
        *overrides: str,
        profile: str = PROFILE,
        time: int = 10,
        job: str = "jobs/cartpole.yaml",
        chain: int = 1,
    ) -> None:
        self.root = root
        self.profile = root / "profile.yaml"
        self.profile.write_text(profile)
        self.paths = RunPaths(root / "r")
        sets = [word for override in overrides for word in ("--set", override)]
        where = ["--cluster", str(self.profile), "--root", str(root), "--name", "r", "--time", str(time)]
        where += ["--chain", str(chain)]
        done = srlhpc("submit", job, *where, *sets)
        assert done.returncode == 0, done.stderr

    def command(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return srlhpc(name, "r", "--root", str(self.root), *arguments)

    @property
    def job(self) -> str:
        return job_ids(self.paths)[-1]

    @property
    def state(self) -> dict[str, Any]:
        return run_state(self.paths)

    @property
    def status(self) -> dict[str, Any]:
        return read_json(self.paths.status) or {}

    def change(self, *overrides: str) -> None:
        """Changes the spec of attempts to come."""
        write_atomically(self.paths.spec, dump_experiment(load_experiment(self.paths.spec, overrides)).encode())

    def end(self, number: int) -> dict[str, Any]:
        return read_json(self.paths.attempt(number).end) or {}

    def started(self, number: int) -> dict[str, Any]:
        return read_json(self.paths.attempt(number).attempt) or {}

    def wait_until_trains(self, attempt: int = 1, *, seconds: float = 120.0) -> None:
        """Until that attempt has trained at least one update and a checkpoint is there."""

        def trains() -> bool:
            status = self.status
            return status.get("attempt") == attempt and status.get("phase") in ("training", "checkpointing")

        before = -1 if attempt == 1 else (self.checkpoint(attempt) or 0)
        self.wait(lambda: trains() and self.status.get("updates", 0) > before, seconds)
        self.wait(lambda: bool(checkpoint_files(self.paths.checkpoints)), seconds)

    def checkpoint(self, attempt: int) -> int | None:
        """Updates in the checkpoint that an attempt went on from."""
        name = self.started(attempt).get("checkpoint")
        return updates_of(Path(name)) if name else None

    def wait_for_state(self, *states: str, seconds: float = 120.0) -> None:
        self.wait(lambda: self.state["state"] in states, seconds)

    def wait(self, happened: Callable[[], object], seconds: float = 120.0) -> None:
        limit = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < limit, json.dumps(self.state, indent=1) + self.log
            time.sleep(0.2)

    def rank(self, role: str) -> dict[str, Any]:
        """What the status says of the first rank of a role, which is not the coordinator's."""
        return next(rank for rank in self.status["ranks"] if rank["label"].startswith(role))

    def pid_of(self, role: str) -> int:
        """Process of the first rank of a role. The lab's nodes share one kernel."""
        if role == "coordinator":
            return self.process_of_rank_0(self.status["attempt"])
        return int(self.rank(role)["pid"])

    def process_of_rank_0(self, attempt: int) -> int:
        """Process of rank 0 of an attempt, which may stand by."""
        return next(pid for pid in processes_of(self.paths.attempt(attempt).folder) if _is_rank_0(pid))

    @property
    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.paths.slurm_folder.glob("*.err")))

    def counters(self) -> list[int]:
        """Steps of every line of the metrics, in order."""
        return [json.loads(line)["steps"] for line in self.paths.metrics.read_text().splitlines()]

    def processes(self) -> list[int]:
        """All that runs of it, on whatever node: they share one kernel."""
        attempts = [path for path in self.paths.attempts.glob("[0-9]*") if path.name.isdigit()]
        return [pid for attempt in attempts for pid in processes_of(attempt)]

    def clear(self) -> None:
        """Ends its jobs and waits until they are gone."""
        for job in job_ids(self.paths) if self.paths.slurm.exists() else []:
            try:
                run_slurm(["scancel", job])
                while run_slurm(["squeue", "-h", "-j", job]).stdout.strip():
                    time.sleep(0.2)
            except ClusterError:
                continue


def _is_rank_0(pid: int) -> bool:
    """Whether a process is rank 0 itself, and neither its script nor what starts it."""
    folder = Path("/proc") / str(pid)
    is_rank = b"srlhpc.ranks.rank" in (folder / "cmdline").read_bytes().split(b"\0")
    return is_rank and b"SRLHPC_RANK=0" in (folder / "environ").read_bytes().split(b"\0")
