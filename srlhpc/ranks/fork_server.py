"""Forks ranks of this machine from a process that has loaded what they need: `python -m srlhpc.ranks.fork_server FD`.

A rank then starts in milliseconds, and its memory is shared with the others until it is written. A stub
(ranks/fork_stub.py), which the launcher has started, asks for each; the rank takes over all that the stub was started
with, so that the two are as one process: environment, folder, descriptors, ignored signals, and how it ends. The rank
dies with its stub, and with the fork server.

FD is a socket that listens. Whoever is of another user is turned away.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from srlhpc.ranks.fork_stub import SIZE, STATUS

LOADED = (
    "torch",
    "h5py",
    "srlhpc.ranks.mpi_first",
    "srlhpc.ranks.rank",
    "srlhpc.ranks.trainers",
    "srlhpc.ranks.replaying",
    "srlhpc.ranks.serving",
    "srlhpc.ranks.actors",
)
"""Modules that most ranks load; none of them starts a thread, opens a device or starts MPI."""
_MOST_DESCRIPTORS = 250
_PATIENCE_SECONDS = 10.0
_F_SETSIG = 10
"""A command of Linux that the module fcntl does not name."""


def main(descriptor: int) -> None:
    """Serves until it is killed."""
    for module in LOADED:
        importlib.import_module(module)
    gc.collect()
    # What is there now is never garbage: no collection of a rank looks at it again, and so it stays shared.
    gc.freeze()
    with socket.socket(fileno=descriptor) as listening:
        listening.setblocking(False)
        Server(listening).serve()


class Server:
    """Its stubs, by the process that was forked for each."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._stubs: dict[int, socket.socket] = {}
        self._wakened, wakes = socket.socketpair()
        self._wakened.setblocking(False)
        wakes.setblocking(False)
        self._wakes = wakes

    def serve(self) -> None:
        """Answers stubs; returns never."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)
        while True:
            ready, _, _ = select.select([self._listening, self._wakened], [], [])
            if self._wakened in ready:
                self._wakened.recv(4096)
                self._bury()
            if self._listening in ready:
                self._accept()

    def _accept(self) -> None:
        stub, _ = self._listening.accept()
        stub.settimeout(_PATIENCE_SECONDS)
        try:
            descriptors, request = _received(stub)
        except (OSError, ValueError):
            # It is of somebody else, or has gone.
            stub.close()
            return
        pid = os.fork()
        if not pid:
            self._leave_loop()
            become_rank(stub, descriptors, request)
        for number in descriptors:
            os.close(number)
        self._stubs[pid] = stub

    def _leave_loop(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for other in (self._listening, self._wakened, self._wakes, *self._stubs.values()):
            other.close()

    def _bury(self) -> None:
        while self._stubs:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with self._stubs.pop(pid) as stub:
                try:
                    stub.sendall(STATUS.pack(status))
                except OSError:
                    # The stub has gone before.
                    continue


def _received(stub: socket.socket) -> tuple[list[int], dict[str, Any]]:
    """Descriptors and request of a stub of this user.

    Raises:
        OSError: nothing comes, or it was closed.
        ValueError: it is another user's.
    """
    credentials = stub.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    if struct.unpack("3i", credentials)[1] != os.getuid():
        raise ValueError("a process of another user")
    head, descriptors, _, _ = socket.recv_fds(stub, SIZE.size, _MOST_DESCRIPTORS, socket.MSG_WAITALL)
    if len(head) < SIZE.size:
        raise ConnectionResetError
    (size,) = SIZE.unpack(head)
    content = bytearray()
    while len(content) < size:
        part = stub.recv(size - len(content))
        if not part:
            raise ConnectionResetError
        content += part
    return descriptors, json.loads(content)


def become_rank(stub: socket.socket, descriptors: list[int], request: dict[str, Any]) -> NoReturn:
    """Runs in the process that was forked: takes over what the stub was started with, runs, and ends."""
    kept = _moved_up(stub.detach(), [*descriptors, *request["descriptors"]])
    _take_over(descriptors, request["descriptors"], kept)
    _die_with(kept)
    # As launchers do: whoever signals a process group or closes a terminal reaches one rank.
    os.setsid()
    for number in request["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.umask(request["umask"])
    os.chdir(request["folder"])
    module, *_ = sys.argv = request["program"]
    sys.exit(importlib.import_module(module).main())


def _take_over(received: list[int], numbers: list[int], above: int) -> None:
    """Gives descriptors the numbers that they have in the stub."""
    moved = [_moved_up(number, [above, *received, *numbers]) for number in received]
    for number, wanted in zip(moved, numbers, strict=True):
        os.dup2(number, wanted, inheritable=True)
        os.close(number)


def _moved_up(descriptor: int, others: Iterable[int]) -> int:
    """A number above all others for a descriptor; no program that this one starts inherits it."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(others) + 1)
    os.close(descriptor)
    return moved


def _die_with(connection: int) -> None:
    """Asks the kernel to kill this process when the other end of a connection is closed."""
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(connection, fcntl.F_SETFL, fcntl.fcntl(connection, fcntl.F_GETFL) | os.O_ASYNC)
    # It may have been closed before.
    if select.select([connection], [], [], 0)[0]:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]))
