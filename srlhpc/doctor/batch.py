"""What the batch script of a check runs: the ranks by one srun, as the foreman starts them, and what stays of them.

Run as `python -m srlhpc.doctor.batch WORK`.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import read_json, write_json
from srlhpc.doctor.local_check import check_program, wait_for_ranks
from srlhpc.doctor.mpi_rules import ADDRESSES
from srlhpc.doctor.reports import WorkFolder, read_reports
from srlhpc.errors import ClusterError
from srlhpc.launch.node_sweep import sweep_nodes
from srlhpc.launch.srun_step import end_step, start_step
from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.srun import srun_plugin
from srlhpc.specs.cluster import ClusterProfile


def main(arguments: Sequence[str]) -> int:
    """Runs the step; returns 0 if it could be tried."""
    # The batch script has ignored these signals on behalf of a foreman; here nobody else would end the step.
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda *_: sys.exit(1))
    work = WorkFolder(Path(arguments[0]))
    check = read_json(work.check) or {}
    cluster = ClusterProfile.model_validate(check["cluster"])
    allocation = Allocation.from_json(check["allocation"])
    seen: dict[str, Any] = {"host": socket.gethostname(), "plugin": cluster.srun_mpi}
    try:
        seen["plugin"] = srun_plugin(cluster)
        limit_seconds = float(check["step_seconds"])
        seen |= _run_step(work, allocation, seen["plugin"], limit_seconds)
        if failure := passing_failure(work):
            work.try_again()
            seen |= {"first_try": failure, **_run_step(work, allocation, seen["plugin"], limit_seconds)}
    except (ClusterError, OSError) as error:
        seen["error"] = str(error)
    write_json(work.batch, seen)
    return 0


def _run_step(work: WorkFolder, allocation: Allocation, plugin: str, limit_seconds: float) -> dict[str, Any]:
    # What a killed start leaves in /dev/shm is known by this time.
    write_json(work.attempt.attempt, {"time": time.time()})
    step = start_step(work.attempt, work.read_ranks(), check_program(work), allocation, plugin)
    try:
        timed_out = wait_for_ranks(step, work, limit_seconds)
    finally:
        end_step(step)
    if not _all_done(work):
        sweep_nodes(work.attempt, os.environ["SLURM_JOB_ID"], allocation)
    return {"timed_out": timed_out, "status": step.returncode}


def passing_failure(work: WorkFolder) -> str:
    """What a rank printed of a failure that a run survives by starting its ranks again; empty for any other."""
    words = [rank.last_output for rank in read_reports(work) if rank.has_failed and not rank.mpi]
    return next((word for word in words if ADDRESSES in word), "")


def _all_done(work: WorkFolder) -> bool:
    return all((read_json(work.report(rank.rank)) or {}).get("stage") == "done" for rank in work.read_ranks())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
