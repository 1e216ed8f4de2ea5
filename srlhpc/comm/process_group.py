"""Sums over a policy's trainers through torch.distributed: NCCL on CUDA, Gloo elsewhere.

Every collective is started without blocking and polled, so the trainer serves its channels meanwhile.

Two time limits. *Joining* has one of minutes: a trainer that never comes is an error. *Collectives* have one of a day:
trainers wait in `agree` for as long as the slowest lacks a batch, which may be long and is no fault; a dead trainer is
noticed by its missing heartbeats, not here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, but missing from torch's __all__

from srlhpc.comm.address import Address, listen, reach
from srlhpc.errors import ClusterError

if TYPE_CHECKING:
    from srlhpc.comm.mpi.world import MpiWorld

JOIN_TIMEOUT = timedelta(minutes=10)
_COLLECTIVE_TIMEOUT = timedelta(days=1)


class SingleReducer:
    """One trainer is its own sum."""

    trainers = 1

    def sum(self, tensor: Tensor) -> Generator[None]:  # noqa: ARG002
        """Leaves the tensor as it is."""
        yield from ()

    def agree(self, flags: Sequence[float]) -> Generator[None, None, list[float]]:
        """The flags themselves."""
        yield from ()
        return list(flags)

    def close(self) -> None:
        """Nothing to leave."""


class GroupReducer:
    """Sums over the trainers of one policy, in this process's only process group.

    Args:
        rank: place among the trainers.
        trainers: how many.
        device: of the tensors; decides the backend.
        store: where they meet.
    """

    def __init__(self, rank: int, trainers: int, device: torch.device, store: TCPStore) -> None:
        self.trainers = trainers
        self._device = device
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=store,
            rank=rank,
            world_size=trainers,
            timeout=_COLLECTIVE_TIMEOUT,
            device_id=device if device.type == "cuda" else None,
        )

    def sum(self, tensor: Tensor) -> Generator[None]:
        """Replaces `tensor` by its sum over all trainers; yields while the others are not ready.

        Raises:
            ClusterError: another trainer is gone.
        """
        try:
            work = dist.all_reduce(tensor, async_op=True)
            assert work is not None
            while not work.is_completed():
                yield
            # Over, so this does not block: it raises what went wrong, and on CUDA orders the sum before what follows.
            work.wait()
        except RuntimeError as error:
            raise ClusterError(f"a sum over {self.trainers} trainers failed; one of them is gone: {error}") from error

    def agree(self, flags: Sequence[float]) -> Generator[None, None, list[float]]:
        """The sum of each flag over all trainers.

        "All are ready" is a sum equal to `trainers`; "one wants to stop" is a sum above 0.
        """
        sums = torch.tensor(flags, dtype=torch.float64, device=self._device)
        yield from self.sum(sums)
        return [float(value) for value in sums.tolist()]

    def close(self) -> None:
        """Leaves the group. Never call it while another trainer is in a collective that this one has not joined."""
        dist.destroy_process_group()


def host_store(host: str, trainers: int, timeout: timedelta = JOIN_TIMEOUT) -> TCPStore:
    """Opens, at the first trainer, a meeting place on a port that the system chooses (`store.port`).

    It listens at that number only. Left to itself, a TCPStore listens on every interface of the node, and whoever
    reaches it may read and write: it asks nobody who he is.
    """
    descriptor, port = listen(host)
    return TCPStore(
        host, port, trainers, is_master=True, timeout=timeout, wait_for_workers=False, master_listen_fd=descriptor
    )


def join_store(address: Address, trainers: int, timeout: timedelta = JOIN_TIMEOUT) -> TCPStore:
    """Joins the meeting place of the first trainer.

    Raises:
        ClusterError: it cannot be reached.
    """
    reach(address, timeout.total_seconds())
    return TCPStore(address.host, address.port, trainers, is_master=False, timeout=timeout, wait_for_workers=False)


def join_trainers(world: MpiWorld | None, ranks: Sequence[int], device: torch.device) -> SingleReducer | GroupReducer:
    """The reducer of one policy; all its trainers call this at about the same time.

    Args:
        world: all ranks; None if there is one trainer.
        ranks: of the policy's trainers, in order.
        device: of the tensors.
    """
    if len(ranks) == 1:
        return SingleReducer()
    assert world is not None, "several trainers need MPI"
    # Imported here: one trainer alone runs without an MPI library.
    from srlhpc.comm.rendezvous import exchange_address, introduce, is_one_node, listening_host

    if is_one_node(world, ranks) and sys.platform == "linux":
        # What carries the sums stays on the node as well, unless the user chose an interface.
        for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(variable, "lo")
    if world.rank == ranks[0]:
        host = listening_host(world, ranks)
        store = host_store(host, len(ranks))
        exchange_address(world, ranks, Address(host, store.port))
    else:
        introduce(world, ranks)
        store = join_store(exchange_address(world, ranks, None), len(ranks))
    return GroupReducer(list(ranks).index(world.rank), len(ranks), device, store)
