"""Inference stream: requests of groups and their replies through the channel classes, beside other ways.

The messages have the real layouts and the links are those of a run. An actor copies its observations into each
request, as an environment's are; the server answers at once: no network is run. Beside it, in the same run: a bare
loop of mpi4py with persistent requests that does the same, and ZeroMQ (DEALER, ROUTER over TCP) with pickled dicts.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from srlhpc.bench.contest import Way, contest, row_of
from srlhpc.bench.in_world import poll_until, rank_main
from srlhpc.bench.rows import Row
from srlhpc.bench.streams import LIMIT_SECONDS, has_zeromq, size_text
from srlhpc.bench.worlds import measured_in_world
from srlhpc.comm.channel import Inbox, Link, Outbox, Stream, Transport
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.mpi.library import MPI
from srlhpc.comm.mpi.world import MpiTransport, MpiWorld
from srlhpc.comm.node.links import share_links
from srlhpc.comm.node.rows import SharedRows
from srlhpc.comm.transport import RankTransport
from srlhpc.data.blocks import PolicyShapes, reply_layout, request_layout
from srlhpc.data.layout import Layout
from srlhpc.environment import ArraySpec, Discrete, Kind
from srlhpc.roles.role import INFERENCE

log = logging.getLogger(__name__)

_ROWS_IN_FLIGHT = 8
_LEAST_GROUPS = 2
_REPLY_SLOTS = 2


def measure_inference(
    row_sizes: Sequence[int], groups: Sequence[int], *, actors: int, seconds: float, repeats: int
) -> list[Row]:
    """A row for every size of an observation, in bytes, and every number of environments in a group."""
    rows = []
    for row_bytes in row_sizes:
        for num_environments in groups:
            case = {
                "row_bytes": row_bytes,
                "environments": num_environments,
                "seconds": seconds,
                "repeats": repeats,
                "zeromq": has_zeromq(),
            }
            log.info("inference stream, %s x %d", size_text(row_bytes), num_environments)
            limit = LIMIT_SECONDS + 100 * seconds * repeats
            found = measured_in_world("srlhpc.bench.inference", 1 + actors, case, limit_seconds=limit)
            title = ("inference stream", f"{size_text(row_bytes)} x {num_environments}")
            amount = num_environments * groups_of(num_environments) * actors
            rate, cpu = (1e-3, "k rows/s"), (1e6, "CPU-s per 1M rows")
            rows.append(row_of(found, "channels", title, amount, rate=rate, cpu=cpu))
    return rows


def groups_of(num_environments: int) -> int:
    """Groups of one actor: as many as hold eight rows, two at least."""
    return max(_LEAST_GROUPS, _ROWS_IN_FLIGHT // num_environments)


# --- on the ranks ----------------------------------------------------------------------------------------------------


def _measure(world: MpiWorld, case: Mapping[str, Any]) -> dict[str, Any]:
    num_environments, groups = case["environments"], groups_of(case["environments"])
    kind = Kind("agent", ("agent",), {"obs": ArraySpec((case["row_bytes"],), "uint8")}, Discrete(4))
    shapes = PolicyShapes(kind, {}, {"value": ArraySpec((), "float32")})
    request, reply = request_layout(shapes, num_environments, 1), reply_layout(shapes, num_environments, 1)
    observation = {name: np.ones_like(view) for name, view in request.views(request.allocate()).items()}
    traffic = _Traffic(groups, request, reply, observation)
    rank_of = {rank: rank for rank in range(world.size)}
    over_mpi = MpiTransport(world.comm, rank_of)
    shared = share_links(world, rank_of, _described(world.size - 1, traffic))
    transport = RankTransport(world.rank, rank_of, InProcessTransport(), over_mpi, shared)
    ways: dict[str, Way] = {
        "channels": _way(world, transport, traffic),
        "bare mpi4py": _Bare(world, traffic),
    }
    if shared is not None:
        ways["channels over MPI"] = _way(world, over_mpi, traffic)
    if case["zeromq"]:
        from srlhpc.bench.zeromq import requests_by_zeromq

        ways["ZeroMQ + pickle"] = requests_by_zeromq(world, groups, reply, observation)
    found = contest(world, ways, seconds=case["seconds"], repeats=case["repeats"], first=50)
    transport.close()
    return found


class _Traffic(NamedTuple):
    """What goes between an actor and the server."""

    groups: int
    """Groups of one actor."""
    request: Layout
    reply: Layout
    observation: Mapping[str, np.ndarray[Any, Any]]
    """The fields of every request."""


def _way(world: MpiWorld, transport: Transport, traffic: _Traffic) -> Way:
    return (_serve if world.rank == 0 else _ask)(world, transport, traffic)


def _described(actors: int, traffic: _Traffic) -> list[SharedRows]:
    """Both ends of all links, for a node's shared memory."""
    ends = [(actor, group) for actor in range(1, 1 + actors) for group in range(traffic.groups)]
    requests = SharedRows(tuple(_link(Stream.REQUESTS, *end) for end in ends), traffic.request, 1)
    return [requests, *(SharedRows((_link(Stream.REPLIES, *end),), traffic.reply, _REPLY_SLOTS) for end in ends)]


def _link(stream: Stream, actor: int, group: int) -> Link:
    source, destination = (actor, 0) if stream is Stream.REQUESTS else (0, actor)
    return Link(stream, source, destination, (actor - 1) * 64 + group)


def _serve(world: MpiWorld, transport: Transport, traffic: _Traffic) -> Way:
    ends = [(actor, group) for actor in range(1, world.size) for group in range(traffic.groups)]
    inbox = transport.inbox([_link(Stream.REQUESTS, *end) for end in ends], traffic.request)
    outboxes = [
        transport.outbox(_link(Stream.REPLIES, *end), traffic.reply, slots=_REPLY_SLOTS, synchronous=False)
        for end in ends
    ]
    answered = 0

    def poll() -> bool:
        nonlocal answered
        inbox.poll()
        waiting = []
        while (message := inbox.take()) is not None:
            waiting.append(message)
        for message in waiting:
            answer = outboxes[message.slot].acquire()
            assert answer is not None, "one request of a group is outstanding"
            outboxes[message.slot].send(answer)
            inbox.release(message)
        answered += len(waiting)
        return bool(waiting)

    def serve(count: int) -> None:
        nonlocal answered
        answered = 0
        poll_until(lambda: answered == count * len(ends), poll, INFERENCE)

    return serve


class _Seat:
    """One group of an actor: a request is outstanding until its reply is taken."""

    def __init__(self, requests: Outbox, replies: Inbox, observation: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self._requests, self._replies, self._observation = requests, replies, observation
        self.answered = 0

    def ask(self) -> None:
        message = self._requests.acquire()
        assert message is not None, "the server has taken the one before"
        for name, array in self._observation.items():
            message.fields[name][...] = array
        self._requests.send(message)

    def is_answered(self) -> bool:
        self._replies.poll()
        reply = self._replies.take()
        if reply is None:
            return False
        self._replies.release(reply)
        self.answered += 1
        return True


def _ask(world: MpiWorld, transport: Transport, traffic: _Traffic) -> Way:
    seats = [
        _Seat(
            transport.outbox(_link(Stream.REQUESTS, world.rank, group), traffic.request, slots=1),
            transport.inbox([_link(Stream.REPLIES, world.rank, group)], traffic.reply),
            traffic.observation,
        )
        for group in range(traffic.groups)
    ]

    def ask(count: int) -> None:
        waiting = list(seats)
        for seat in seats:
            seat.answered = 0
            seat.ask()

        def poll() -> bool:
            busy = False
            for seat in seats:
                if seat.is_answered():
                    busy = True
                    if seat.answered < count:
                        seat.ask()
                    else:
                        waiting.remove(seat)
            return busy

        poll_until(lambda: not waiting, poll, INFERENCE)

    return ask


class _Bare:
    """Persistent requests, one receive and one send for each group, all receives tested by one call."""

    def __init__(self, world: MpiWorld, traffic: _Traffic) -> None:
        comm, self._rank = world.comm, world.rank
        self._observation = traffic.observation
        self._left: list[int] = []
        outgoing, incoming = (traffic.reply, traffic.request) if world.rank == 0 else (traffic.request, traffic.reply)
        peers = [
            (actor if world.rank == 0 else 0, 10_000 + (actor - 1) * 64 + group)
            for actor in (range(1, world.size) if world.rank == 0 else [world.rank])
            for group in range(traffic.groups)
        ]
        self._received = [incoming.allocate() for _ in peers]
        self._sent = [outgoing.allocate() for _ in peers]
        self._fields = [outgoing.views(buffer) for buffer in self._sent]
        self._receives: list[Any] = [
            comm.Recv_init([buffer, MPI.BYTE], *peer) for buffer, peer in zip(self._received, peers, strict=True)
        ]
        self._sends: list[Any] = [
            comm.Send_init([buffer, MPI.BYTE], *peer) for buffer, peer in zip(self._sent, peers, strict=True)
        ]

    def __call__(self, count: int) -> None:
        # Whoever receives posts first; the last receive of a round is not posted again.
        self._left = [count] * len(self._receives)
        for receive in self._receives:
            receive.Start()
        if self._rank != 0:
            for place in range(len(self._left)):
                self._send(place)
        poll_until(lambda: not any(self._left), self._poll, INFERENCE)
        MPI.Request.Waitall(self._sends)

    def _poll(self) -> bool:
        busy = False
        while slots := MPI.Request.Testsome(self._receives):
            busy = True
            for place in slots:
                self._left[place] -= 1
                if self._left[place]:
                    self._receives[place].Start()
                if self._rank == 0 or self._left[place]:
                    self._send(place)
        return busy

    def _send(self, place: int) -> None:
        if self._rank != 0:
            for name, array in self._observation.items():
                self._fields[place][name][...] = array
        self._sends[place].Wait()
        self._sends[place].Start()


if __name__ == "__main__":
    rank_main(_measure)
