"""Sample stream: blocks from actors to a trainer through the channel classes, beside other ways of moving them.

The blocks have the real layout; nobody fills or reads them. Beside it, in the same run: a bare loop of mpi4py with
persistent synchronous sends and posted receives, the way of the channels without their bookkeeping; ZeroMQ (PUSH, PULL
over TCP) with the same arrays as a pickled dict; and copying the same bytes within one process, which is a limit.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from srlhpc.bench.contest import Way, contest, row_of
from srlhpc.bench.in_world import poll_until, rank_main
from srlhpc.bench.rows import Row
from srlhpc.bench.worlds import measured_in_world
from srlhpc.comm.channel import Inbox, Link, Outbox, Stream
from srlhpc.comm.mpi.library import MPI
from srlhpc.comm.mpi.world import MpiTransport, MpiWorld
from srlhpc.data.blocks import PolicyShapes, block_layout
from srlhpc.data.layout import Layout
from srlhpc.environment import ArraySpec, Discrete, Kind
from srlhpc.plan.sizes import POOL_SLOTS, SENDING_SLOTS
from srlhpc.roles.role import INFERENCE, STREAM

log = logging.getLogger(__name__)

LIMIT_SECONDS = 120.0
"""Time for the start of a world and its first rounds on a busy machine."""
RECORDS = 32
_RING = 2
_BARE_SLOTS = 4
_BARE_POOL = 8
"""More than the channels have: the bare loop shows what is possible."""


def measure_streams(sizes: Sequence[int], *, actors: int, seconds: float, repeats: int) -> list[Row]:
    """A row for every size of a block, in bytes."""
    rows = []
    for size in sizes:
        case = {"layout_bytes": size, "seconds": seconds, "repeats": repeats, "zeromq": has_zeromq()}
        log.info("sample stream, %s", size_text(size))
        limit = LIMIT_SECONDS + 100 * seconds * repeats
        found = measured_in_world("srlhpc.bench.streams", 1 + actors, case, limit_seconds=limit)
        amount = block_of(size).size_bytes / 1e9
        rate, cpu = (1.0, "GB/s"), (1.0, "CPU-s per GB")
        rows.append(row_of(found, "channels", ("sample stream", size_text(size)), amount, rate=rate, cpu=cpu))
    return rows


def has_zeromq() -> bool:
    return importlib.util.find_spec("zmq") is not None


def size_text(size_bytes: int) -> str:
    """`256 KiB`."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor} {unit}"
    return f"{size_bytes} B"


def block_of(size_bytes: int) -> Layout:
    """A block of about that size: 32 records of one agent, the observation takes what the other fields leave."""
    others = _block(1).size_bytes
    return _block(max(1, (size_bytes - others + 64) // (RECORDS + 1)))


def _block(observation_bytes: int) -> Layout:
    kind = Kind("agent", ("agent",), {"obs": ArraySpec((observation_bytes,), "uint8")}, Discrete(4))
    return block_layout(PolicyShapes(kind, {}, {"value": ArraySpec((), "float32")}), RECORDS, 1, 1)


# --- on the ranks ----------------------------------------------------------------------------------------------------


def _measure(world: MpiWorld, case: Mapping[str, Any]) -> dict[str, Any]:
    layout = block_of(case["layout_bytes"])
    transport = MpiTransport(world.comm, {rank: rank for rank in range(world.size)})
    bare = _Bare(world, layout)
    ways: dict[str, Way] = {"channels": _channels(world, transport, layout), "bare mpi4py": bare}
    if case["zeromq"]:
        from srlhpc.bench.zeromq import blocks_by_zeromq

        ways["ZeroMQ + pickle"] = blocks_by_zeromq(world, layout)
    ways["memcpy"] = _memcpy(world, layout)
    first = max(16, min(1024, (16 << 20) // layout.size_bytes))
    found = contest(world, ways, seconds=case["seconds"], repeats=case["repeats"], first=first)
    # Those count what one sender sends; the copies are made once for all of them.
    for name in found:
        found[name]["count"] *= world.size - 1
    bare.close()
    transport.close()
    return found


def _channels(world: MpiWorld, transport: MpiTransport, layout: Layout) -> Way:
    links = [Link(Stream.BLOCKS, rank, 0, 1) for rank in range(1, world.size)]
    if world.rank == 0:
        return _Receiver(transport.inbox(links, layout, pool=max(POOL_SLOTS, len(links) // 8)), len(links))
    return _Sender(transport.outbox(links[world.rank - 1], layout, slots=_RING + SENDING_SLOTS))


class _Receiver:
    """Takes blocks and gives their slots back."""

    def __init__(self, inbox: Inbox, senders: int) -> None:
        self._inbox, self._senders = inbox, senders
        self._received = 0

    def __call__(self, count: int) -> None:
        self._received = 0
        poll_until(lambda: self._received == count * self._senders, self._poll, STREAM)

    def _poll(self) -> bool:
        busy = self._inbox.poll()
        while (message := self._inbox.take()) is not None:
            self._inbox.release(message)
            self._received += 1
        return busy


class _Sender:
    """Sends whatever its slots hold."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._left = 0
        self._touched: set[int] = set()

    def __call__(self, count: int) -> None:
        self._left = count
        poll_until(lambda: not self._left and self._outbox.is_drained, self._poll, INFERENCE)

    def _poll(self) -> bool:
        message = self._outbox.acquire() if self._left else None
        if message is None:
            return self._outbox.poll()
        if message.slot not in self._touched:
            # Memory that was never written is one page of zeros, which costs nothing to read.
            message.buffer.fill(1)
            self._touched.add(message.slot)
        self._outbox.send(message)
        self._left -= 1
        return True


class _Bare:
    """Persistent requests and one call that tests them all."""

    def __init__(self, world: MpiWorld, layout: Layout) -> None:
        comm, self._rank, self._senders, tag = world.comm, world.rank, world.size - 1, 999
        slots = _BARE_POOL if world.rank == 0 else _BARE_SLOTS
        self._buffers = [np.ones(layout.size_bytes, np.uint8) for _ in range(slots)]
        self._requests: list[Any] = [
            comm.Recv_init([buffer, MPI.BYTE], MPI.ANY_SOURCE, tag)
            if world.rank == 0
            else comm.Ssend_init([buffer, MPI.BYTE], 0, tag)
            for buffer in self._buffers
        ]
        if world.rank == 0:
            for request in self._requests:
                request.Start()

    def __call__(self, count: int) -> None:
        if self._rank == 0:
            self._receive(count * self._senders)
        else:
            self._send(count)

    def _receive(self, count: int) -> None:
        received = 0

        def poll() -> bool:
            nonlocal received
            busy = False
            while slots := MPI.Request.Testsome(self._requests):
                for slot in slots:
                    self._requests[slot].Start()
                received += len(slots)
                busy = True
            return busy

        poll_until(lambda: received == count, poll, STREAM)

    def _send(self, count: int) -> None:
        started = min(count, len(self._requests))
        finished = 0
        for request in self._requests[:started]:
            request.Start()

        def poll() -> bool:
            nonlocal started, finished
            slots = MPI.Request.Testsome(self._requests) or []
            finished += len(slots)
            for slot in slots:
                if started < count:
                    self._requests[slot].Start()
                    started += 1
            return bool(slots)

        poll_until(lambda: finished == count, poll, INFERENCE)

    def close(self) -> None:
        """Posted receives must not outlive their memory."""
        if self._rank == 0:
            for request in self._requests:
                request.Cancel()
                request.Wait()
                request.Free()


def _memcpy(world: MpiWorld, layout: Layout) -> Way:
    """Rank 0 copies what all senders would send; the others wait."""
    source = np.ones(layout.size_bytes, np.uint8)
    rows = [np.zeros_like(source) for _ in range(_BARE_POOL)]

    def copy(count: int) -> None:
        for number in range(count * (world.size - 1)):
            np.copyto(rows[number % len(rows)], source)

    return copy if world.rank == 0 else lambda count: None  # noqa: ARG005


if __name__ == "__main__":
    rank_main(_measure)
