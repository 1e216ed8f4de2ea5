"""Inside a measuring MPI world: the clock that all ranks share, and the loop that ranks of a run use."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from srlhpc.comm.mpi.library import MPI
from srlhpc.comm.mpi.world import MpiWorld, abort, finalize_or_exit, join_world
from srlhpc.data.atomic import write_json
from srlhpc.roles.role import Backoff, Role, run_roles


class Spent(NamedTuple):
    """Wall seconds on rank 0, CPU seconds of all ranks."""

    wall: float
    cpu: float


def rank_main(measure: Callable[[MpiWorld, Mapping[str, Any]], Any]) -> None:
    """Main program of a rank: `python -m MODULE FOLDER RANKS`; writes what `measure` gives on rank 0."""
    folder, ranks = Path(sys.argv[1]), int(sys.argv[2])
    world = join_world(ranks)
    try:
        result = measure(world, json.loads((folder / "case.json").read_text()))
        if world.rank == 0:
            write_json(folder / "result.json", result)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        abort(1)
    finalize_or_exit(world, 5)


def meet(world: MpiWorld) -> None:
    """A barrier that leaves the cores to those who still work."""
    request = world.comm.Ibarrier()
    while not request.Test():
        time.sleep(200e-6)


def timed(world: MpiWorld, work: Callable[[], None]) -> Spent:
    """What the same work on all ranks costs."""
    meet(world)
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    own = np.array([time.perf_counter() - wall, time.process_time() - cpu])
    meet(world)
    everyone = np.empty((world.size, 2))
    world.comm.Allgather(own, everyone)
    return Spent(float(everyone[0, 0]), float(everyone[:, 1].sum()))


def agreed(world: MpiWorld, value: int) -> int:
    """Rank 0's value, on all ranks."""
    shared = np.array([value], np.int64)
    world.comm.Bcast([shared, MPI.INT64_T], 0)
    return int(shared[0])


class _Polled(Role):
    label = "measured"

    def __init__(self, poll: Callable[[], bool]) -> None:
        self._poll = poll

    def poll(self) -> bool:
        return self._poll()

    def counters(self) -> dict[str, float]:
        return {}

    @property
    def is_done(self) -> bool:
        return False


def poll_until(is_over: Callable[[], bool], poll: Callable[[], bool], backoff: Backoff) -> None:
    """Polls and waits as the ranks of a run do."""
    run_roles([_Polled(poll)], backoff, keep_going=lambda: not is_over())
