"""What a channel over MPI costs beside bare mpi4py: `mpiexec -n 3 python benchmarks/channels.py`.

Rank 0 receives from the others, which send as fast as they can; nobody fills or reads the messages.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from srlhpc.comm.channel import Inbox, Link, Outbox, Stream
from srlhpc.comm.mpi import MpiFabric, MpiWorld, finalize_or_exit, start_mpi
from srlhpc.comm.mpi_library import MPI
from srlhpc.data.layout import HEADER_BYTES, Field, Layout

KIB = 1024
SIZES = (8 * KIB, 256 * KIB, 2048 * KIB, 16384 * KIB)
SLOTS = 4
POOL = 8
REPETITIONS = 5
POLLS = 20_000


def layout_of(size_bytes: int) -> Layout:
    return Layout.of([Field("bytes", (size_bytes - HEADER_BYTES,), "uint8")])


class Backoff:
    """50 polls with a yield of the processor, then sleeps that grow from 50 us to 1 ms."""

    def __init__(self) -> None:
        self._misses = 0

    def after(self, did_anything: bool) -> None:
        self._misses = 0 if did_anything else self._misses + 1
        if did_anything:
            return
        if self._misses <= 50:
            os.sched_yield()
        else:
            time.sleep(min(50e-6 * 1.5 ** min(self._misses - 51, 10), 1e-3))


def bare_send(requests: list[MPI.Prequest], count: int) -> None:
    for request in requests:
        request.Start()
    started, finished, backoff = len(requests), 0, Backoff()
    while finished < count:
        slots = MPI.Request.Testsome(requests) or []
        for slot in slots:
            finished += 1
            if started < count:
                requests[slot].Start()
                started += 1
        backoff.after(bool(slots))


def bare_receive(requests: list[MPI.Prequest], count: int) -> None:
    """The receives stay posted, as those of an inbox do."""
    received, backoff = 0, Backoff()
    while received < count:
        slots = MPI.Request.Testsome(requests) or []
        for slot in slots:
            received += 1
            requests[slot].Start()
        backoff.after(bool(slots))


def send(outbox: Outbox, count: int) -> None:
    sent, backoff = 0, Backoff()
    while sent < count:
        message = outbox.acquire()
        if message is not None:
            outbox.send(message)
            sent += 1
        backoff.after(message is not None)
    while not outbox.is_drained:
        backoff.after(outbox.poll())


def receive(inbox: Inbox, count: int) -> None:
    received, backoff = 0, Backoff()
    while received < count:
        did = inbox.poll()
        while (message := inbox.take()) is not None:
            inbox.release(message)
            received += 1
        backoff.after(did)


def timed(world: MpiWorld, work: Callable[[], None]) -> tuple[float, float]:
    """Wall seconds, and CPU seconds of all ranks."""
    world.comm.Barrier()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    spent = world.comm.allreduce(time.process_time() - cpu)
    return time.perf_counter() - wall, spent


class Contest:
    """One message size, by bare mpi4py and by channels; memory is touched before the clock starts."""

    def __init__(self, world: MpiWorld, fabric: MpiFabric, size_bytes: int, index: int) -> None:
        self._world = world
        self._size_bytes = size_bytes
        self._count = max(30, min(3000, (256 << 20) // size_bytes))
        self.total = self._count * (world.size - 1)
        self._requests = self._bare_requests(index)
        self.ways: dict[str, Callable[[], None]] = {"bare": self._bare}
        for kind, pool in (("pool", POOL), ("rows", None)):
            index += 1
            links = [Link(Stream.BLOCKS, rank, 0, index) for rank in range(1, world.size)]
            self.ways[kind] = self._channel(fabric, links, pool)

    def close(self) -> None:
        if self._world.rank == 0:
            for request in self._requests:
                request.Cancel()
                request.Wait()
                request.Free()

    def _bare_requests(self, index: int) -> list[MPI.Prequest]:
        comm, tag = self._world.comm, 16 * index + 15
        if self._world.rank != 0:
            buffers = [bytearray(b"1" * self._size_bytes) for _ in range(SLOTS)]
            return [comm.Ssend_init([buffer, MPI.BYTE], 0, tag) for buffer in buffers]
        buffers = [bytearray(b"1" * self._size_bytes) for _ in range(POOL)]
        requests = [comm.Recv_init([buffer, MPI.BYTE], MPI.ANY_SOURCE, tag) for buffer in buffers]
        for request in requests:
            request.Start()
        return requests

    def _bare(self) -> None:
        if self._world.rank == 0:
            bare_receive(self._requests, self.total)
        else:
            bare_send(self._requests, self._count)

    def _channel(self, fabric: MpiFabric, links: list[Link], pool: int | None) -> Callable[[], None]:
        layout = layout_of(self._size_bytes)
        if self._world.rank == 0:
            inbox = fabric.inbox(links, layout, pool=pool)
            receive(inbox, SLOTS * len(links))
            return lambda: receive(inbox, self.total)
        outbox = fabric.outbox(links[self._world.rank - 1], layout, slots=SLOTS)
        for message in [outbox.acquire() for _ in range(SLOTS)]:
            assert message is not None
            message.buffer.fill(1)
            outbox.send(message, HEADER_BYTES)
        return lambda: send(outbox, self._count)


def throughput(world: MpiWorld, fabric: MpiFabric) -> None:
    for place, size_bytes in enumerate(SIZES):
        contest = Contest(world, fabric, size_bytes, 2 * place + 1)
        times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in ("bare", "pool", "rows")}
        for _ in range(REPETITIONS):
            for kind, measured in times.items():
                measured.append(timed(world, contest.ways[kind]))
        contest.close()
        if world.rank == 0:
            print(
                f"{size_bytes // KIB:6d} KiB | "
                + " | ".join(cell(k, v, contest.total, size_bytes) for k, v in times.items())
            )


def cell(kind: str, times: list[tuple[float, float]], total: int, size_bytes: int) -> str:
    """Best and median rate, least CPU per message."""
    walls, cpus = sorted(w for w, _ in times), sorted(c for _, c in times)
    gigabytes = total * size_bytes / 1e9
    rates = f"{gigabytes / walls[0]:5.2f}/{gigabytes / walls[len(walls) // 2]:5.2f} GB/s"
    return f"{kind} {rates} {1e6 * cpus[0] / total:7.1f} us CPU"


def idle_poll(world: MpiWorld, fabric: MpiFabric) -> None:
    """Cost of a poll that finds nothing."""
    layout = layout_of(8 * KIB)
    for rows in (1, 16, 64):
        links = [Link(Stream.REQUESTS, 1, 0, 1000 * rows + index) for index in range(rows)]
        if world.rank == 0:
            inbox = fabric.inbox(links, layout)
            best = min(cost_of(inbox.poll) for _ in range(REPETITIONS))
            requests = [world.comm.Recv_init([bytearray(8 * KIB), MPI.BYTE], 1, 7000 + row) for row in range(rows)]
            for request in requests:
                request.Start()
            bare = min(cost_of(lambda requests=requests: MPI.Request.Testsome(requests)) for _ in range(REPETITIONS))
            for request in requests:
                request.Cancel()
                request.Wait()
                request.Free()
            inbox.close()
            print(f"idle poll of {rows:3d} rows: {1e6 * best:.2f} us, bare Testsome {1e6 * bare:.2f} us")
    world.comm.Barrier()


def cost_of(poll: Callable[[], object]) -> float:
    """Seconds per call."""
    start = time.perf_counter()
    for _ in range(POLLS):
        poll()
    return (time.perf_counter() - start) / POLLS


def main() -> None:
    world = start_mpi(int(os.environ.get("PMI_SIZE", "3")))
    fabric = MpiFabric(world.comm, {rank: rank for rank in range(world.size)})
    if world.rank == 0:
        print("best/median of", REPETITIONS, "and least CPU per message, all ranks;", SLOTS, "in flight per sender")
    throughput(world, fabric)
    idle_poll(world, fabric)
    fabric.close()
    finalize_or_exit(world, 20)


if __name__ == "__main__":
    main()
