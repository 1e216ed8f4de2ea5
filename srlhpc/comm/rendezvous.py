"""How a policy's trainers learn where their process group meets."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import numpy as np

from srlhpc.comm.address import LOOPBACK, Address
from srlhpc.comm.mpi import RENDEZVOUS_TAG, MpiWorld, wait
from srlhpc.comm.mpi_library import MPI

_NAME_BYTES = 256


def meeting_host(world: MpiWorld, ranks: Sequence[int]) -> str:
    """The name under which these ranks reach this one: loopback if all are on this node, else the host's name."""
    return LOOPBACK if {world.nodes[rank] for rank in ranks} == {world.node} else socket.gethostname()


def exchange_address(
    world: MpiWorld, ranks: Sequence[int], own: Address | None, timeout_seconds: float = 600.0
) -> Address:
    """The first of the ranks tells the others its address; everyone returns it.

    Args:
        world: all ranks.
        ranks: those that meet; this rank is one of them.
        own: the address, on the first of the ranks; ignored elsewhere.
        timeout_seconds: how long to wait; the slowest may still be importing torch.

    Raises:
        ClusterError: the first rank does not say it, or the others do not listen, in time.
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
