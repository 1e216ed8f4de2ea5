"""Stands in for `srlhpc.ranks.rank`: obeys the same files, without MPI. `fake_rank.py RUN ATTEMPT WAY`."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from srlhpc.data.atomic import write_json
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.shared_memory import write_down_names
from srlhpc.specs.child_processes import die_with_parent


def main() -> None:
    die_with_parent()
    paths = RunPaths(Path(sys.argv[1]))
    attempt, way = paths.attempt(int(sys.argv[2])), sys.argv[3]
    rank = int(os.environ["PMI_RANK"])
    if way == "mpi":
        start_mpi_and_keep_its_files(attempt)
    (attempt.folder / f"pid-{rank}").write_text(str(os.getpid()))
    if rank == 0:
        coordinate(paths, attempt, way)
    elif way == "raises" and rank == 1:
        fail(attempt, rank)
    while not attempt.outcome.exists():
        time.sleep(0.01)


def coordinate(paths: RunPaths, attempt: AttemptPaths, way: str) -> None:
    size = int(os.environ["PMI_SIZE"])
    while way == "silent" or not all((attempt.folder / f"pid-{rank}").exists() for rank in range(size)):
        time.sleep(0.01)
    ranks = [{"rank": rank, "label": "x", "host": "here", "pid": 0, "alive": True} for rank in range(size)]
    write_json(paths.status, {"attempt": attempt.number, "phase": "training", "steps": 7, "ranks": ranks})
    while not attempt.stop.exists():
        if way in ("finishes", "raises"):
            write_json(attempt.outcome, {"state": "finished", "reason": "steps", "message": ""})
            return
        time.sleep(0.01)
    if way == "deaf":
        time.sleep(1000)
    (paths.checkpoints / "updates-000000007.h5").touch()
    attempt.stop.unlink()
    write_json(attempt.outcome, {"state": "interrupted", "reason": "interrupt", "message": ""})


def start_mpi_and_keep_its_files(attempt: AttemptPaths) -> None:
    """As a rank that is killed before it can unlink them."""
    write_down_names(attempt)
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()


def fail(attempt: AttemptPaths, rank: int) -> None:
    content = {"rank": rank, "role": "actor", "index": 0, "host": "here", "time": time.time(), "message": "no more"}
    attempt.failure(rank).write_text(json.dumps(content | {"traceback": "Traceback:\n  ...", "kind": "exception"}))
    sys.exit(1)


main()
