"""Shared memory between the ranks of one node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srlhpc.comm.fence import node_fence
from srlhpc.comm.mpi.library import MPI
from srlhpc.comm.mpi.world import MpiWorld, unlink_shared_memory
from srlhpc.comm.node.parameters import NodeMemory


@dataclass(frozen=True)
class NodeShare:
    """This rank's part in its node's memory."""

    memory: NodeMemory
    place: int
    members: tuple[int, ...]
    """Ranks of this node that share the memory, by place."""
    window: MPI.Win
    """Keeps the memory; never freed, since that would wait for dead ranks."""


def share_on_node(world: MpiWorld, subscribers: Sequence[int], size: int, *, tag: int = 0) -> NodeShare | None:
    """Shared memory for one policy's parameters; None where every rank must pull for itself.

    That is where no other rank of this node subscribes, or where MPI shares no memory within the node (containers).

    Collective over the node's subscribers only; other ranks may leave the call out. Everyone makes its calls in the
    same order of policies.

    Args:
        world: all ranks.
        subscribers: all ranks, of all nodes, that subscribe to the policy.
        size: numbers in the vector.
        tag: tells calls apart that run at the same time; the policy's number.
    """
    members = [rank for rank in sorted(set(subscribers)) if world.nodes[rank] == world.node]
    if world.rank not in members or len(members) < 2:
        return None
    comm = world.comm.Create_group(world.comm.Get_group().Incl(members), tag)
    if comm.Split_type(MPI.COMM_TYPE_SHARED).Get_size() < len(members):
        return None
    size_bytes = NodeMemory.size_bytes(len(members), size)
    place = comm.Get_rank()
    # All of it at the first member, so that it is one piece however MPI aligns the others' parts.
    window = MPI.Win.Allocate_shared(size_bytes if place == 0 else 0, 1, comm=comm)
    buffer = np.frombuffer(window.Shared_query(0)[0].cast("B"), np.uint8)[:size_bytes]
    if place == 0:
        buffer[:] = 0
    # Sync, barrier, sync: the zeros are visible to all before anyone may write.
    window.Lock_all()
    window.Sync()
    comm.Barrier()
    window.Sync()
    unlink_shared_memory()
    return NodeShare(NodeMemory(buffer, len(members), size, node_fence()), place, tuple(members), window)
