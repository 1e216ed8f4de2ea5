"""Where a server listens, and whether somebody does."""

from __future__ import annotations

import socket
import time
from typing import NamedTuple

from srlhpc.errors import ClusterError

LOOPBACK = "127.0.0.1"


class Address(NamedTuple):
    """Host name or number, and TCP port."""

    host: str
    port: int


def facing(host: str) -> str:
    """The number of this node's interface that its packets to a host leave by; nothing is sent.

    Where the name means nothing here, it is the number that this node's own name stands for.

    Raises:
        ClusterError: neither name means anything here.
    """
    for name in (host, socket.gethostname()):
        try:
            family, _, _, _, place = socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                # UDP: this only looks up the route.
                probe.connect(place)
                return str(probe.getsockname()[0])
        except OSError as error:
            problem = error
    raise ClusterError(
        f"neither '{host}' nor this node's own name '{socket.gethostname()}' can be resolved here ({problem}), so "
        "trainers cannot meet; do the nodes know each other by host name (DNS or /etc/hosts)?"
    )


def listen(host: str, backlog: int | None = None) -> tuple[int, int]:
    """A socket that listens at that number only, on a port that the system chooses: its descriptor and the port.

    Args:
        host: the number.
        backlog: connections that may wait to be accepted; None for the system's usual.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, 0), family=family, backlog=backlog)
    port = int(listener.getsockname()[1])
    return listener.detach(), port


def reach(address: Address, timeout_seconds: float) -> None:
    """Waits until somebody listens there.

    Raises:
        ClusterError: nobody does, or the name means nothing here.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            socket.create_connection(address, timeout=1.0).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"cannot reach the first trainer at {address.host}:{address.port} ({error}); "
                    "do the trainers' nodes reach each other by host name, and does no firewall stand between?"
                ) from error
        time.sleep(0.1)
