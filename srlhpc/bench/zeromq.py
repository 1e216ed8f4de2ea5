"""The same traffic by ZeroMQ with pickled dicts, blocking calls and TCP, as systems without MPI move it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import zmq

from srlhpc.bench.contest import Way
from srlhpc.comm.mpi.library import MPI
from srlhpc.comm.mpi.world import MpiWorld
from srlhpc.data.layout import Layout

_QUEUED = 4
_WITHOUT_COPY_BYTES = 1 << 16


def blocks_by_zeromq(world: MpiWorld, layout: Layout) -> Way:
    """Rank 0 pulls what the others push, and unpickles it."""
    if world.rank == 0:
        puller = _made(zmq.PULL)
        bind(world, puller)

        def receive(count: int) -> None:
            for _ in range(count * (world.size - 1)):
                pickle.loads(puller.recv(copy=layout.size_bytes < _WITHOUT_COPY_BYTES))

        return receive
    pusher = _made(zmq.PUSH)
    connect(world, pusher)
    # Memory that was never written is one page of zeros, which costs nothing to read.
    arrays = dict(layout.views(np.ones(layout.size_bytes, np.uint8)))

    def send(count: int) -> None:
        for _ in range(count):
            pusher.send(pickle.dumps(arrays, 5), copy=layout.size_bytes < _WITHOUT_COPY_BYTES)

    return send


def requests_by_zeromq(
    world: MpiWorld, groups: int, reply: Layout, observation: Mapping[str, np.ndarray[Any, Any]]
) -> Way:
    """Every actor keeps a request of each of its groups outstanding; rank 0 answers what is there, oldest first."""
    if world.rank == 0:
        router = _made(zmq.ROUTER)
        bind(world, router)
        answer = dict(reply.views(reply.allocate()))

        def serve(count: int) -> None:
            for _ in range(count * groups * (world.size - 1)):
                actor, text = router.recv_multipart()
                group, _ = pickle.loads(text)
                router.send_multipart([actor, pickle.dumps((group, answer), 5)])

        return serve
    dealer = _made(zmq.DEALER)
    connect(world, dealer)

    def ask(count: int) -> None:
        for group in range(groups):
            dealer.send(pickle.dumps((group, observation), 5))
        for number in range(count * groups):
            group, _ = pickle.loads(dealer.recv())
            if number < (count - 1) * groups:
                dealer.send(pickle.dumps((group, observation), 5))

    return ask


def _made(kind: int) -> Any:
    """A socket that never keeps its process from ending; a pipe has few slots, as an outbox has."""
    context: Any = zmq.Context()
    socket = context.socket(kind)
    socket.linger = 0
    if kind in (zmq.PUSH, zmq.PULL):
        socket.set_hwm(_QUEUED)
    return socket


def bind(world: MpiWorld, socket: Any) -> None:
    """Listens on a free port, which all ranks learn."""
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    world.comm.Bcast([np.array([port], np.int64), MPI.INT64_T], 0)


def connect(world: MpiWorld, socket: Any) -> None:
    """Connects to rank 0."""
    port = np.zeros(1, np.int64)
    world.comm.Bcast([port, MPI.INT64_T], 0)
    socket.connect(f"tcp://127.0.0.1:{int(port[0])}")
