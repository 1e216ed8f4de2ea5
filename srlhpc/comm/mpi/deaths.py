"""The start of a rank's death watch: who listens where is exchanged over MPI."""

from __future__ import annotations

import logging
import os
import select
import socket
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.address import LOOPBACK, Address, facing
from srlhpc.comm.death_watch import SECRET_BYTES, DeathWatch, Door, has_descriptors, hold
from srlhpc.comm.mpi.library import MPI
from srlhpc.comm.mpi.world import MpiWorld, all_gather, wait
from srlhpc.errors import ClusterError, counted

log = logging.getLogger(__name__)

_CONNECT_SECONDS = 5.0
_GREETING_SECONDS = 1.0
_PORT_BYTES = 2
_ROW_BYTES = 64
"""Bytes of a rank: secret, port, and the number of its interface; nothing where it does not listen."""
_ACROSS = ("MPIR_CVAR_NUM_CLIQUES", "MPIR_CVAR_ODD_EVEN_CLIQUES", "MPIR_CVAR_NOLOCAL")
"""Variables by which MPICH sends over the network even to ranks on the same node."""


def watch_deaths(
    world: MpiWorld, mortal: Collection[int], senders: Collection[int], timeout_seconds: float = 300.0
) -> DeathWatch | None:
    """Connects the mortal ranks to those on other nodes that send to them; collective over all ranks.

    None where it is not needed: a send to a dead rank crashes MPICH 4.3 to 5.0, and only over a network.

    Args:
        world: all ranks.
        mortal: ranks that the others outlive; equal on all ranks.
        senders: those that send to this rank; only looked at if it is mortal itself.
        timeout_seconds: how long to wait for the others.

    Raises:
        ClusterError: not all ranks came.
    """
    is_posed = any(os.environ.get(name, "0") != "0" for name in _ACROSS)
    if not mortal or not _crashes() or not (is_posed or len(set(world.nodes)) > 1):
        return None
    guests = _one_of_two_nodes(world, mortal)
    names = {rank: world.text_of(rank, socket.gethostname(), timeout_seconds) for rank in guests}
    door = None if world.rank in mortal else _open_door(world, mortal, names)
    rows = all_gather(world.comm, _row(door), timeout_seconds)
    held: list[socket.socket] = []
    if world.rank in mortal:
        held = _hold(world, rows, [rank for rank in senders if is_posed or world.nodes[rank] != world.node])
    # Past it everybody has tried to connect, so that doors may close.
    wait(world.comm.Ibarrier(), timeout_seconds, meanwhile=None if door is None else door.poll)
    watched = {} if door is None else door.close(_GREETING_SECONDS)
    if watched:
        log.info("watches %s on other nodes for their death", counted(len(watched), "rank"))
    return DeathWatch(watched, held)


def _crashes() -> bool:
    """Whether this MPI may crash; epoll is where there are clusters."""
    return "MPICH" in MPI.Get_library_version().upper() and hasattr(select, "epoll")


def _one_of_two_nodes(world: MpiWorld, ranks: Collection[int]) -> list[int]:
    """The first of the ranks, and the first that is on another node than that, if there is one."""
    first = min(ranks)
    others = [rank for rank in ranks if world.nodes[rank] != world.nodes[first]]
    return [first, *([min(others)] if others else [])]


def _open_door(world: MpiWorld, mortal: Collection[int], names: dict[int, str]) -> Door | None:
    if not has_descriptors(len(mortal)):
        log.warning(
            "this process may not open as many files as there are actors, so it may die with one of them on another "
            "node (ulimit -Hn)"
        )
        return None
    distant = [name for rank, name in names.items() if world.nodes[rank] != world.node]
    try:
        return Door(facing(distant[0]) if distant else LOOPBACK, mortal)
    except (ClusterError, OSError) as error:
        log.warning("cannot listen, so this process may die with an actor on another node: %s", error)
        return None


def _row(door: Door | None) -> NDArray[np.uint8]:
    content = b""
    if door is not None:
        content = door.secret + door.address.port.to_bytes(_PORT_BYTES, "big") + door.address.host.encode()
    return np.frombuffer(content.ljust(_ROW_BYTES, b"\0"), np.uint8)


def _hold(world: MpiWorld, rows: NDArray[np.uint8], senders: Collection[int]) -> list[socket.socket]:
    """This rank's connections to those that listen."""
    doors: dict[Address, bytes] = {}
    for rank in senders:
        row = rows[rank].tobytes()
        secret, rest = row[:SECRET_BYTES], row[SECRET_BYTES:]
        port, host = int.from_bytes(rest[:_PORT_BYTES], "big"), rest[_PORT_BYTES:].rstrip(b"\0").decode()
        # All zeros: that rank has no door.
        if port:
            doors[Address(host, port)] = secret
    held, problems = hold(world.rank, doors, _CONNECT_SECONDS)
    if problems:
        log.warning(
            "cannot connect to %d of %d ranks on other nodes that send here, so they may die if this one does: %s",
            len(problems), len(doors), problems[0],
        )  # fmt: skip
    return held
