"""What a rank does that was started in advance: MPI is up; it loads what its roles need and waits for its attempt.

rank 0 looks for the attempt's description and tells the others by a broadcast; nobody computes, nobody holds a GPU.
"""

from __future__ import annotations

import logging
import socket
import time

import numpy as np

from srlhpc.comm.mpi.library import MPI
from srlhpc.comm.mpi.world import MpiWorld, all_gather
from srlhpc.data.forgiving import Forgiving
from srlhpc.errors import ClusterError
from srlhpc.import_path import load_module
from srlhpc.plan.plan import Plan, RankPlan
from srlhpc.ranks.free_memory import free_bytes, room_for
from srlhpc.runs.paths import AttemptPaths

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.05
_ROUNDS_PER_CHECK = 100
"""Rounds between two looks at the free memory."""


def stand_by(plan: Plan, here: RankPlan, world: MpiWorld, attempt: AttemptPaths, patience: float) -> None:
    """Returns when the attempt begins.

    Args:
        plan: the plan.
        here: this rank.
        world: all ranks.
        attempt: its description appears when it begins.
        patience: seconds to wait for the others to have loaded.

    Raises:
        ClusterError: memory is short on this node, and others need it more.
    """
    beside = [plan.ranks[rank].needs_torch for rank, node in enumerate(world.nodes) if node == world.node]
    _require_room(room_for(beside), attempt)
    load(plan, here)
    all_gather(world.comm, np.zeros(1, np.uint8), patience)
    log.info("standing by")
    if here.rank == 0:
        attempt.ready.touch()
    told = None if here.rank == 0 else world.comm.Ibcast([bytearray(1), MPI.BYTE], root=0)
    looks, rounds = Forgiving(), 0
    while not (looks.exists(attempt.attempt) if told is None else told.Test()):
        rounds += 1
        if rounds % _ROUNDS_PER_CHECK == 0:
            _require_room(room_for([]), attempt)
        time.sleep(_PAUSE_SECONDS)
    if told is None:
        world.comm.Ibcast([bytearray(1), MPI.BYTE], root=0).Wait()


def load(plan: Plan, here: RankPlan) -> None:
    """Imports what the rank's roles are made of; makes nothing."""
    spec = plan.spec
    if here.needs_torch:
        for policy in spec.policies.values():
            load_module(policy.network.kind, "srlhpc.policies")
            load_module(policy.algorithm.kind, "srlhpc.algorithms")
    if here.needs_environment:
        load_module(spec.environment.factory, "envs")


def _require_room(needed: int, attempt: AttemptPaths) -> None:
    free = free_bytes()
    # Once the attempt has begun there are no others.
    if free < needed and Forgiving().exists(attempt.standby):
        raise ClusterError(
            f"{free >> 20} MB of memory are free on {socket.gethostname()}, and {needed >> 20} MB should be"
        )
