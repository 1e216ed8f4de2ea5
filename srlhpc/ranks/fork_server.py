"""Forks ranks of this machine from a process that has loaded what they need: `python -m srlhpc.ranks.fork_server FD`.

A rank then starts in milliseconds, and its memory is shared with the others until it is written. A stub
(ranks/fork_stub.py), which the launcher has started, asks for each; the rank takes over what the stub was started
with: environment, folder, descriptors, umask, ignored signals, cores and limits. The stub ends as the rank ends. The
rank dies with its stub, and with the fork server.

FD is a socket that listens. A stub must be of the same user and know the secret that this process finds in its own
environment. One that gets no answer becomes the rank itself, so whatever fails here costs time and nothing else.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NoReturn

from srlhpc.ranks.fork_stub import FORKED, SIZE, STATUS, user_behind
from srlhpc.runs.processes import FORK_SERVER_VARIABLE
from srlhpc.specs.child_processes import die_with_parent

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
_PAUSE_SECONDS = 0.05
"""Time to the next try where the kernel grants nothing, no descriptor for example."""
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
        Server(listening, os.environ[FORK_SERVER_VARIABLE]).serve()


class Server:
    """Its stubs, by the process that was forked for each.

    Args:
        listening: where stubs connect.
        secret: what they must have in their environment.
    """

    def __init__(self, listening: socket.socket, secret: str) -> None:
        self._listening, self._secret = listening, secret
        self._stubs: dict[int, socket.socket] = {}
        self._wakened, self._wakes = socket.socketpair()
        self._wakened.setblocking(False)
        self._wakes.setblocking(False)

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
                try:
                    stub, _ = self._listening.accept()
                except OSError:
                    time.sleep(_PAUSE_SECONDS)
                    continue
                self._answer(stub)

    def _answer(self, stub: socket.socket) -> None:
        """Forks for a stub, or closes the connection, and then the stub helps itself."""
        descriptors: list[int] = []
        server = os.getpid()
        try:
            request = self._received(stub, descriptors)
            pid = os.fork()
        except (OSError, ValueError, LookupError, TypeError):
            stub.close()
            _close(descriptors)
            return
        if not pid:
            die_with_parent()
            if os.getppid() != server:
                os._exit(1)
            self._leave_loop()
            become_rank(stub, descriptors, request)
        _close(descriptors)
        self._stubs[pid] = stub
        # Where sending fails, the stub has gone, and its rank with it.
        with suppress(OSError):
            stub.sendall(FORKED)

    def _received(self, stub: socket.socket, descriptors: list[int]) -> dict[str, Any]:
        """The request of a stub; its descriptors are added to the list, whatever comes after them.

        Raises:
            OSError: nothing comes, or it was closed.
            ValueError: it is another user's, does not know the secret, or has too many descriptors.
        """
        stub.settimeout(_PATIENCE_SECONDS)
        if user_behind(stub) != os.getuid():
            raise ValueError("a process of another user")
        head, came, flags, _ = socket.recv_fds(stub, SIZE.size, _MOST_DESCRIPTORS, socket.MSG_WAITALL)
        descriptors += came
        if len(head) < SIZE.size or flags & socket.MSG_CTRUNC:
            raise ValueError("a request that is not whole")
        (size,) = SIZE.unpack(head)
        content = bytearray()
        while len(content) < size:
            part = stub.recv(size - len(content))
            if not part:
                raise ConnectionResetError
            content += part
        request: dict[str, Any] = json.loads(content)
        if request["environment"].get(FORK_SERVER_VARIABLE) != self._secret:
            raise ValueError("a process that does not know the secret")
        return request

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
            # Where sending fails, the stub has gone before.
            with self._stubs.pop(pid) as stub, suppress(OSError):
                stub.sendall(STATUS.pack(status))


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
    os.sched_setaffinity(0, request["cores"])
    for name, limits in request["limits"].items():
        with suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, name), limits)
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


def _close(descriptors: list[int]) -> None:
    for number in descriptors:
        os.close(number)


def _die_with(connection: int) -> None:
    """Asks the kernel to kill this process when the other end of a connection is closed."""
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(connection, fcntl.F_SETFL, fcntl.fcntl(connection, fcntl.F_GETFL) | os.O_ASYNC)
    # It may have been closed before.
    look = select.poll()
    look.register(connection, select.POLLIN)
    if look.poll(0):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]))
