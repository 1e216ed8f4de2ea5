"""How a policy's trainers learn where their process group meets."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import numpy as np

from srlhpc.comm.address import LOOPBACK, Address, facing
from srlhpc.comm.mpi.library import MPI
from srlhpc.comm.mpi.world import RENDEZVOUS_TAG, MpiWorld, wait

_NAME_BYTES = 256


def is_one_node(world: MpiWorld, ranks: Sequence[int]) -> bool:
    """Whether all these ranks are on one node."""
    return len({world.nodes[rank] for rank in ranks}) == 1


def listening_host(world: MpiWorld, ranks: Sequence[int], timeout_seconds: float = 600.0) -> str:
    """The number of the interface that the others reach, the only one to listen at; called on the first of the ranks.

    Loopback if all are on one node, else the interface that faces another node of theirs, whose name its
    first rank sends (`introduce`).

    Raises:
        ClusterError: that rank does not come in time, or names cannot be resolved.
    """
    if is_one_node(world, ranks):
        return LOOPBACK
    name = np.zeros(_NAME_BYTES, np.uint8)
    wait(world.comm.Irecv([name, MPI.BYTE], _guest(world, ranks), RENDEZVOUS_TAG), timeout_seconds)
    return facing(name.tobytes().rstrip(b"\0").decode())


def introduce(world: MpiWorld, ranks: Sequence[int], timeout_seconds: float = 600.0) -> None:
    """Tells the first of the ranks the name of another node; called on the others, before `exchange_address`.

    Raises:
        ClusterError: the first rank does not listen in time.
    """
    if is_one_node(world, ranks) or world.rank != _guest(world, ranks):
        return
    name = np.zeros(_NAME_BYTES, np.uint8)
    own = socket.gethostname().encode()
    name[: len(own)] = np.frombuffer(own, np.uint8)
    wait(world.comm.Isend([name, MPI.BYTE], ranks[0], RENDEZVOUS_TAG), timeout_seconds)


def _guest(world: MpiWorld, ranks: Sequence[int]) -> int:
    """The first of the ranks on another node than ranks[0]."""
    return next(rank for rank in ranks if world.nodes[rank] != world.nodes[ranks[0]])


def exchange_address(
    world: MpiWorld, ranks: Sequence[int], own: Address | None, timeout_seconds: float = 600.0
) -> Address:
    """The first of the ranks sends the others its address; everyone returns it.

    Args:
        world: all ranks.
        ranks: those that meet; this rank is one of them.
        own: the address, on the first of the ranks; ignored elsewhere.
        timeout_seconds: how long to wait; the slowest may still be importing torch.

    Raises:
        ClusterError: the first rank does not send it, or the others do not listen, in time.
    """
    content = np.zeros(8 + _NAME_BYTES, np.uint8)
    if world.rank == ranks[0]:
        assert own is not None, "the first rank has the address"
        name = own.host.encode()
        content[:8].view(np.int64)[0] = own.port
        content[8 : 8 + len(name)] = np.frombuffer(name, np.uint8)
        sends = [world.comm.Isend([content, MPI.BYTE], rank, RENDEZVOUS_TAG) for rank in ranks[1:]]
        for send in sends:
            wait(send, timeout_seconds)
        return own
    wait(world.comm.Irecv([content, MPI.BYTE], ranks[0], RENDEZVOUS_TAG), timeout_seconds)
    return Address(content[8:].tobytes().rstrip(b"\0").decode(), int(content[:8].view(np.int64)[0]))
