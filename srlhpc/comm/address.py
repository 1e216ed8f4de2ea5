"""Where a server listens, and whether somebody does."""

from __future__ import annotations

import socket
import time
from typing import NamedTuple

from srlhpc.objects import ClusterError

LOOPBACK = "127.0.0.1"


class Address(NamedTuple):
    """Host name or number, and TCP port."""

    host: str
    port: int


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
