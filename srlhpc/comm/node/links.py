"""The memory that ranks of one node share for the links between them."""

from __future__ import annotations

import logging
import mmap
import os
import time
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.channel import Link
from srlhpc.comm.fence import node_fence
from srlhpc.comm.mpi.library import MPI
from srlhpc.comm.mpi.world import RENDEZVOUS_TAG, MpiWorld, wait
from srlhpc.comm.node.rows import RowMemory, SharedRows
from srlhpc.comm.node.transport import NodeTransport
from srlhpc.errors import ClusterError

log = logging.getLogger(__name__)

_TOKEN_BYTES = 64
"""Random bytes at the beginning, by which a rank knows that it has opened the right file."""
_HEAD_BYTES = 2 * _TOKEN_BYTES
"""Before everything else: the token, and in the next line whether all ranks have the memory."""
_UNKNOWN, _ALL_HAVE_IT, _SOME_HAVE_NOT = range(3)
_PAUSE_SECONDS = 10e-3


def share_links(
    world: MpiWorld, rank_of: Mapping[int, int], all_rows: Sequence[SharedRows], timeout_seconds: float = 300.0
) -> NodeTransport | None:
    """The transport of those links whose ends are on different ranks of this node.

    None where there are none here, or where the node's ranks cannot share memory (containers, too little memory).
    Collective over the node's ranks that are ends of such links; other ranks may leave the call out.

    Args:
        world: all ranks.
        rank_of: address of every role to its rank.
        all_rows: of every inbox; links that leave the node or stay on a rank are left out here.
        timeout_seconds: how long to wait for the others.

    Raises:
        ClusterError: not all of the node's ranks came.
    """
    here = [rows for rows in (_on_node(world, rank_of, rows) for rows in all_rows) if rows.links]
    ends = {rank_of[end] for rows in here for link in rows.links for end in (link.source, link.destination)}
    if world.rank not in ends:
        return None
    size_bytes = sum(map(RowMemory.size_bytes, here))
    buffer = _shared_buffer(world, sorted(ends), size_bytes, timeout_seconds)
    if world.rank == min(ends):
        how = (
            f"{size_bytes / 2**20:.1f} MiB of memory" if buffer is not None else "MPI, for memory cannot be shared here"
        )
        log.info("%d ranks of this node exchange requests and replies through %s", len(ends), how)
    return None if buffer is None else NodeTransport(here, buffer, node_fence())


def _on_node(world: MpiWorld, rank_of: Mapping[int, int], rows: SharedRows) -> SharedRows:
    def is_here(link: Link) -> bool:
        source, destination = rank_of[link.source], rank_of[link.destination]
        return source != destination and world.nodes[source] == world.nodes[destination] == world.node

    return SharedRows(tuple(link for link in rows.links if is_here(link)), rows.layout, rows.slots)


def _shared_buffer(world: MpiWorld, members: Sequence[int], size_bytes: int, limit: float) -> NDArray[np.uint8] | None:
    """Zeroed memory that all members see; None, on all of them, where one of them cannot.

    A file without a name: nothing is left behind, however the ranks end. Messages that are polled make it known, since
    hundreds of ranks that meet inside MPI would spin there; what all have to wait for is then read from the memory.
    """
    make = _offered if world.rank == members[0] else _taken
    memory = make(world, members, size_bytes, limit)
    return None if memory is None else np.frombuffer(memory, np.uint8)[_HEAD_BYTES:]


def _offered(world: MpiWorld, members: Sequence[int], size_bytes: int, limit: float) -> mmap.mmap | None:
    """The first rank makes the memory, and hears whether the others have it."""
    memory, descriptor = _made(size_bytes)
    place = np.array([os.getpid(), descriptor], np.int64)
    token = np.frombuffer(memory[:_TOKEN_BYTES] if memory else bytes(_TOKEN_BYTES), np.uint8)
    _tell(world, members[1:], np.concatenate([place.view(np.uint8), token]), limit)
    all_have_it = memory is not None
    # All are heard, also after one has refused: a message that nobody receives would stay in MPI.
    for rank in members[1:]:
        all_have_it &= bool(_hear(world, rank, 1, limit)[0])
    if memory is None:
        return None
    # Not earlier: the others open the memory by this descriptor. It stays mapped.
    os.close(descriptor)
    memory[_TOKEN_BYTES] = _ALL_HAVE_IT if all_have_it else _SOME_HAVE_NOT
    return memory if all_have_it else None


def _taken(world: MpiWorld, members: Sequence[int], size_bytes: int, limit: float) -> mmap.mmap | None:
    """Another rank opens the memory, and answers whether it could."""
    facts = _hear(world, members[0], 16 + _TOKEN_BYTES, limit)
    # Two int64 numbers before the token.
    process, descriptor = facts[:16].view(np.int64)
    memory = _opened(f"/proc/{process}/fd/{descriptor}", size_bytes, facts[16:].tobytes())
    _tell(world, members[:1], np.array([memory is not None], np.uint8), limit)
    if memory is None:
        return None
    deadline = time.monotonic() + limit
    while (verdict := memory[_TOKEN_BYTES]) == _UNKNOWN:
        if time.monotonic() > deadline:
            raise ClusterError(f"not all ranks of this node have come within {limit:.0f} s")
        time.sleep(_PAUSE_SECONDS)
    return memory if verdict == _ALL_HAVE_IT else None


def _made(size_bytes: int) -> tuple[mmap.mmap | None, int]:
    """New memory behind a token, and the descriptor of its file; None and -1 where there is none."""
    try:
        descriptor = os.memfd_create("srlhpc")
    except (OSError, AttributeError):
        return None, -1
    try:
        # At once, so that too little memory is an error here and not a signal later.
        os.posix_fallocate(descriptor, 0, _HEAD_BYTES + size_bytes)
        memory = mmap.mmap(descriptor, _HEAD_BYTES + size_bytes)
    except OSError:
        os.close(descriptor)
        return None, -1
    memory[:_TOKEN_BYTES] = os.urandom(_TOKEN_BYTES)
    return memory, descriptor


def _opened(path: str, size_bytes: int, token: bytes) -> mmap.mmap | None:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        memory = mmap.mmap(descriptor, _HEAD_BYTES + size_bytes)
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
    return memory if memory[:_TOKEN_BYTES] == token else None


def _tell(world: MpiWorld, ranks: Sequence[int], content: NDArray[np.uint8], limit: float) -> None:
    for request in [world.comm.Isend([content, MPI.BYTE], rank, RENDEZVOUS_TAG) for rank in ranks]:
        wait(request, limit)


def _hear(world: MpiWorld, rank: int, size_bytes: int, limit: float) -> NDArray[np.uint8]:
    content = np.zeros(size_bytes, np.uint8)
    wait(world.comm.Irecv([content, MPI.BYTE], rank, RENDEZVOUS_TAG), limit)
    return content
