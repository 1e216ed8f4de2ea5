"""The one memory barrier of all memory that ranks of a node share.

    writer:  writes a message | fence | writes the number that announces it
    reader:  reads that number | fence | reads the message | fence | says, or looks whether, it may be written again

Without the fences, processors with weak order (ARM, POWER) may show the number before the message, or read the message
before the number. x86 keeps loads in order and stores in order by itself, and Python reorders nothing.
"""

from __future__ import annotations

import platform
from collections.abc import Callable

Fence = Callable[[], None] | None
"""A barrier for loads and stores; None where the processor needs none."""

_IN_ORDER = ("x86_64", "AMD64")


def node_fence() -> Fence:
    """What this process calls between what it shares: MPI's barrier, which wants a window, an empty one of its own."""
    if platform.machine() in _IN_ORDER:
        return None
    # Imported here: who only reads and writes, as tests and serial runs do, needs no MPI library.
    from srlhpc.comm.mpi.library import MPI

    # Without memory and without other ranks: only its barrier is wanted.
    window = MPI.Win.Create(None, comm=MPI.COMM_SELF)
    window.Lock_all()
    return window.Sync
