"""What one rank of a check does: it uses everything that a rank of a run will use, and writes down what it saw.

`node_start` runs it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from srlhpc.comm.mpi.library import MPI
from srlhpc.comm.mpi.world import MpiWorld, all_gather, finalize_or_exit, join_world, wait
from srlhpc.comm.node.window import share_on_node
from srlhpc.doctor.binding import bind_gpus
from srlhpc.doctor.folder_probe import hold_locked, said, try_locked
from srlhpc.doctor.reports import CheckedRank, Stages, WorkFolder
from srlhpc.runs.shared_memory import write_down_names

START_SECONDS = 60.0
CLOCK_ROUNDS = 5
_WINDOW_NUMBERS = 1 << 20


def main(arguments: Sequence[str]) -> int:
    """Runs one rank of the check; returns its exit code."""
    work = WorkFolder(Path(arguments[0]))
    ranks, here = work.read_ranks(), work.this_rank()
    stages = Stages(work.report(here.rank))
    bind_gpus(work, here.rank)
    try:
        write_down_names(work.attempt)
        world = join_world(len(ranks), rank=here.rank, timeout_seconds=START_SECONDS)
        _work(stages, work, ranks, here, world)
    except Exception as error:
        logging.getLogger(__name__).exception("check failed")
        stages.add(error=str(error) or type(error).__name__)
        os._exit(1)
    finalize_or_exit(world, START_SECONDS)
    return 0


def _work(stages: Stages, work: WorkFolder, ranks: list[CheckedRank], here: CheckedRank, world: MpiWorld) -> None:
    mpi = {"size": world.size, "nodes": len(set(world.nodes)), "threads": MPI.Query_thread()}
    stages.enter("the clocks", mpi=mpi)
    stages.enter("the locks", clock=_clock(world))
    stages.enter("memory shared on a node", lock=_lock(world, work.locked))
    several = sum(node == world.node for node in world.nodes) > 1
    shares = (share_on_node(world, range(world.size), _WINDOW_NUMBERS) is not None) if several else None
    stages.enter("loading torch", shares=shares)
    users = [rank.rank for rank in ranks if rank.needs_torch]
    gpu = _gpu() if here.needs_torch else {}
    stages.enter("all-reduce", gpu=gpu)
    sums = {}
    for backend, members, device in (("gloo", users, "cpu"), ("nccl", _owners(world, gpu), gpu.get("device", ""))):
        if world.rank in members and len(members) > 1:
            sums[backend] = _sum(world, members, device)
    stages.enter("waiting for the others", sums=sums)
    barrier(world)
    stages.enter("done")


def barrier(world: MpiWorld) -> None:
    """Waits until all ranks are here.

    Raises:
        ClusterError: some did not come.
    """
    wait(world.comm.Ibarrier(), START_SECONDS)


def _clock(world: MpiWorld) -> list[float]:
    times = []
    for _ in range(CLOCK_ROUNDS):
        barrier(world)
        times.append(time.time())
    return times


def _lock(world: MpiWorld, path: Path) -> str:
    """Rank 0 keeps a file locked while the others try to open it."""
    if world.rank:
        barrier(world)
        answer = try_locked(path) if path.exists() else "not locked"
        barrier(world)
        return answer
    try:
        with hold_locked(path):
            barrier(world)
            barrier(world)
        return ""
    except OSError as error:
        path.unlink(missing_ok=True)
        barrier(world)
        barrier(world)
        return f"not locked: {said(error)}"


def _gpu() -> dict[str, Any]:
    # Imported here and below: an actor's node needs no torch.
    from srlhpc.doctor.torch_check import gpu_facts

    return gpu_facts()


def _sum(world: MpiWorld, members: Sequence[int], device: str) -> str:
    from srlhpc.doctor.torch_check import all_reduce

    return all_reduce(world, members, device)


def _owners(world: MpiWorld, gpu: dict[str, Any]) -> list[int]:
    """The first rank of every GPU. All ranks call it."""
    own = hashlib.sha256(gpu["identity"].encode()).digest() if "identity" in gpu else bytes(32)
    everyone = [row.tobytes() for row in all_gather(world.comm, np.frombuffer(own, np.uint8), START_SECONDS)]
    return [rank for rank, row in enumerate(everyone) if any(row) and everyone.index(row) == rank]
