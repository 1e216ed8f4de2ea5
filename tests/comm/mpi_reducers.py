"""One trainer of a group: `... mpi_reducers FOLDER TRAINERS [die | nodes]`; rank 0 comes late to the first sum.

`nodes`: every rank poses as a node of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import torch

from srlhpc.comm.mpi.world import finalize_or_exit, join_world
from srlhpc.comm.process_group import GroupReducer, SingleReducer, join_trainers
from srlhpc.errors import ClusterError

Reducer = SingleReducer | GroupReducer

LATE_SECONDS = 0.3


def finish(generator: Generator[None, None, Any]) -> tuple[Any, int]:
    """What it returns, and how often it yielded."""
    yields = 0
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value, yields
        yields += 1
        time.sleep(1e-3)


def sum_and_agree(reducer: Reducer, rank: int) -> dict[str, Any]:
    if rank == 0:
        time.sleep(LATE_SECONDS)
    tensor = torch.arange(5, dtype=torch.float32) + rank
    _, yields = finish(reducer.sum(tensor))
    sums, _ = finish(reducer.agree([1.0, float(rank == 0)]))
    return {"trainers": reducer.trainers, "sum": tensor.tolist(), "agreed": sums, "yields": yields}


def outlive(reducer: Reducer, rank: int) -> dict[str, Any]:
    """Rank 1 kills itself; what the other one hears of it."""
    finish(reducer.agree([1.0]))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        finish(reducer.agree([1.0]))
    except ClusterError as error:
        return {"error": str(error)}
    return {"error": ""}


def main(folder: str, trainers: int, what: str = "sum") -> None:
    host = f"node-{os.getpid()}" if what == "nodes" else None
    world = join_world(trainers, host=host, timeout_seconds=60)
    reducer = join_trainers(world, list(reversed(range(trainers))), torch.device("cpu"))
    result = (outlive if what == "die" else sum_and_agree)(reducer, world.rank)
    Path(folder, f"{world.rank}.json").write_text(json.dumps(result))
    if what != "die":
        reducer.close()
    finalize_or_exit(world, 0.5 if what == "die" else 20)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
