"""The memory that ranks of one node share for the links between them."""

from __future__ import annotations

import contextlib
import mmap
import os
import platform
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.channel import Link
from srlhpc.comm.mpi import MpiWorld, all_gather, wait
from srlhpc.comm.mpi_library import MPI
from srlhpc.comm.node_fabric import NodeFabric
from srlhpc.comm.shared_rows import Fence, RowMemory, Rows

_GROUP_TAG = 8191
"""Of the communicator that shares the memory; those of `share_on_node` are numbers of policies."""
_TOKEN_BYTES = 64
"""Random bytes before everything else, by which a rank knows that it has opened the right file."""


def share_links(world: MpiWorld, rank_of: Mapping[int, int], all_rows: Sequence[Rows]) -> NodeFabric | None:
    """The fabric of those links whose ends are on different ranks of this node.

    None where there are none here, or where the node's ranks cannot share memory (containers, too little memory).
    Collective over the node's ranks that are ends of such links; other ranks may leave the call out.

    Args:
        world: all ranks.
        rank_of: address of every role to its rank.
        all_rows: of every inbox; links that leave the node or stay on a rank are left out here.
    """
    here = [rows for rows in (_on_node(world, rank_of, rows) for rows in all_rows) if rows.links]
    ends = {rank_of[end] for rows in here for link in rows.links for end in (link.source, link.destination)}
    if world.rank not in ends:
        return None
    comm = world.comm.Create_group(world.comm.Get_group().Incl(sorted(ends)), _GROUP_TAG)
    buffer = _shared_buffer(comm, sum(map(RowMemory.size_bytes, here)))
    return None if buffer is None else NodeFabric(here, buffer, _fence())


def _on_node(world: MpiWorld, rank_of: Mapping[int, int], rows: Rows) -> Rows:
    def is_here(link: Link) -> bool:
        source, destination = rank_of[link.source], rank_of[link.destination]
        return source != destination and world.nodes[source] == world.nodes[destination] == world.node

    return Rows(tuple(link for link in rows.links if is_here(link)), rows.layout, rows.slots)


def _shared_buffer(comm: MPI.Intracomm, size_bytes: int, timeout_seconds: float = 300.0) -> NDArray[np.uint8] | None:
    """Zeroed memory that all ranks see; None, on all of them, where one of them cannot.

    A file without a name: nothing is left behind, however the ranks end.
    """
    facts = np.zeros(3, np.int64)
    token = np.zeros(_TOKEN_BYTES, np.uint8)
    memory: mmap.mmap | None = None
    if comm.Get_rank() == 0:
        with contextlib.suppress(OSError, AttributeError):
            descriptor = os.memfd_create("srlhpc")
            os.posix_fallocate(descriptor, 0, _TOKEN_BYTES + size_bytes)
            memory = mmap.mmap(descriptor, _TOKEN_BYTES + size_bytes)
            memory[:_TOKEN_BYTES] = os.urandom(_TOKEN_BYTES)
            facts[:] = os.getpid(), descriptor, 1
            token[:] = np.frombuffer(memory[:_TOKEN_BYTES], np.uint8)
    wait(comm.Ibcast([facts, MPI.INT64_T]), timeout_seconds)
    wait(comm.Ibcast([token, MPI.BYTE]), timeout_seconds)
    if comm.Get_rank() != 0 and facts[2]:
        memory = _opened(f"/proc/{facts[0]}/fd/{facts[1]}", size_bytes, token.tobytes())
    has_it = all_gather(comm, np.array([memory is not None], np.uint8), timeout_seconds)
    if comm.Get_rank() == 0 and memory is not None:
        os.close(int(facts[1]))
    return np.frombuffer(memory, np.uint8)[_TOKEN_BYTES:] if memory is not None and has_it.all() else None


def _opened(path: str, size_bytes: int, token: bytes) -> mmap.mmap | None:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        memory = mmap.mmap(descriptor, _TOKEN_BYTES + size_bytes)
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
    return memory if memory[:_TOKEN_BYTES] == token else None


def _fence() -> Fence:
    """MPI's memory barrier, which wants a window: an empty one of this process alone. x86 needs none."""
    if platform.machine() in ("x86_64", "AMD64"):
        return None
    window = MPI.Win.Create(None, comm=MPI.COMM_SELF)
    window.Lock_all()
    return window.Sync
