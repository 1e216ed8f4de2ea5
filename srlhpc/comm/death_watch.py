"""Who on another node is gone, seen without MPI: by a connection that the system closes when a process ends.

A rank that others outlive holds one TCP connection to each rank that sends to it, and says nothing on it after a
greeting. However it dies, its system closes the connection, and the other end sees that before MPI does.
"""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import logging
import resource
import secrets
import select
import socket
import time
from collections.abc import Collection, Mapping, Sequence

from srlhpc.comm.address import Address, listen

log = logging.getLogger(__name__)

SECRET_BYTES = 16
_RANK_BYTES = 4
_GREETING_BYTES = SECRET_BYTES + _RANK_BYTES
_BACKLOG = 4096
"""Connections that wait to be taken in; as many actors may come at once."""
_SILENT_GUESTS = 256
"""Connections of which nothing is known yet; whoever is one too many takes the place of the oldest."""
_HIGHEST_DESCRIPTOR = 4096
"""A higher one would cost a larger table."""
_OTHER_DESCRIPTORS = 256
_EVENTS = 16


class DeathWatch:
    """The connections of this rank.

    Args:
        watched: rank of those that this one sends to, to the connection from there.
        held: this rank's own connections, which others watch.
    """

    def __init__(self, watched: Mapping[int, socket.socket], held: Sequence[socket.socket] = ()) -> None:
        self._held = tuple(held)
        self._watched = dict(watched)
        self._rank_of = {connection.fileno(): rank for rank, connection in watched.items()}
        self._gone: set[int] = set()
        self._epoll = select.epoll()
        for descriptor in self._rank_of:
            self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLRDHUP)

    def watches(self, rank: int) -> bool:
        return rank in self._watched

    def is_gone(self, rank: int) -> bool:
        """Whether that rank is gone by now. To look once for all costs less than a look at each."""
        self._look()
        return rank in self._gone

    @property
    def sees_a_death(self) -> bool:
        self._look()
        return bool(self._gone)

    def close(self) -> None:
        """Lets go of all connections; those who watch this rank take it for gone."""
        self._epoll.close()
        for connection in (*self._watched.values(), *self._held):
            connection.close()

    def _look(self) -> None:
        while events := self._epoll.poll(0, _EVENTS):
            for descriptor, _ in events:
                # Nobody writes after the greeting, so whatever there is to see is the end.
                rank = self._rank_of[descriptor]
                self._epoll.unregister(descriptor)
                self._watched[rank].close()
                self._gone.add(rank)
                log.warning("rank %d closed its connection, so it is gone; nothing more is sent to it", rank)


class Door:
    """Where the ranks that this one sends to connect, during the start.

    Args:
        host: number of the interface to listen at.
        expected: ranks that may come.
    """

    def __init__(self, host: str, expected: Collection[int]) -> None:
        self.secret = secrets.token_bytes(SECRET_BYTES)
        """What they must know; sent to them over MPI."""
        descriptor, port = listen(host, _BACKLOG)
        self._listener = socket.socket(fileno=descriptor)
        self._listener.setblocking(False)
        self.address = Address(host, port)
        self._expected = expected
        self._guests: list[socket.socket] = []
        self._known: dict[int, socket.socket] = {}

    def poll(self) -> None:
        """Takes in those that are here; waits for nobody."""
        # Whoever is gone again, or one too many for this process, is not taken in.
        with contextlib.suppress(OSError):
            while True:
                self._guests.append(self._listener.accept()[0])
                self._guests[-1].setblocking(False)
                if len(self._guests) > _SILENT_GUESTS:
                    self._hear_all()
        self._hear_all()

    def close(self, patience: float) -> dict[int, socket.socket]:
        """The connections by rank; nobody comes any more.

        Args:
            patience: seconds for those that have connected to say who they are.
        """
        deadline = time.monotonic() + patience
        self.poll()
        while self._guests and time.monotonic() < deadline:
            time.sleep(1e-3)
            self.poll()
        self._listener.close()
        for guest in self._guests:
            guest.close()
        return self._known

    def _hear_all(self) -> None:
        self._guests = [guest for guest in self._guests if self._is_silent(guest)]
        for guest in self._guests[:-_SILENT_GUESTS]:
            guest.close()
        self._guests = self._guests[-_SILENT_GUESTS:]

    def _is_silent(self, guest: socket.socket) -> bool:
        """Whether it has yet to say who it is; closes it if it is a stranger."""
        try:
            said = guest.recv(_GREETING_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            said = b""
        rank = int.from_bytes(said[SECRET_BYTES:], "big")
        if hmac.compare_digest(said[:SECRET_BYTES], self.secret) and rank in self._expected:
            self._known[rank] = guest
        else:
            guest.close()
        return False


def hold(rank: int, doors: Mapping[Address, bytes], patience: float) -> tuple[list[socket.socket], list[str]]:
    """This rank's connections, and what went wrong with others.

    Args:
        rank: this one.
        doors: where to connect, and the secret there.
        patience: seconds for all of them.
    """
    deadline = time.monotonic() + patience
    held, problems = [], []
    for address, secret in doors.items():
        try:
            connection = socket.create_connection(address, timeout=max(deadline - time.monotonic(), 0.01))
            connection.sendall(secret + rank.to_bytes(_RANK_BYTES, "big"))
            held.append(_closed_first(connection, len(doors)))
        except OSError as error:
            problems.append(f"{address.host}:{address.port}: {error}")
    return held, problems


def _closed_first(connection: socket.socket, count: int) -> socket.socket:
    """The connection with one of the highest descriptors: Linux closes those of a process that ended from the top."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    top = _HIGHEST_DESCRIPTOR if soft == resource.RLIM_INFINITY else min(soft, _HIGHEST_DESCRIPTOR)
    try:
        descriptor = fcntl.fcntl(connection.fileno(), fcntl.F_DUPFD_CLOEXEC, max(0, top - count))
    except OSError:
        return connection
    connection.close()
    return socket.socket(fileno=descriptor)


def has_descriptors(connections: int) -> bool:
    """Whether this process may have that many connections, and MPI as many; raises its soft limit if it must."""
    needed = 2 * connections + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return True
    if hard != resource.RLIM_INFINITY and needed > hard:
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return True
