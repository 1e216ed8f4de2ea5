"""The transport of links between ranks that share memory. Free of MPI."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.channel import Inbox, Link, Outbox, Transport
from srlhpc.comm.fence import Fence
from srlhpc.comm.node.rows import RowMemory, SharedOutbox, SharedRowInbox, SharedRows
from srlhpc.data.layout import Layout


class NodeTransport(Transport):
    """Links in shared memory, all described beforehand.

    Args:
        all_rows: of every inbox with such links, equal at all ends.
        buffer: as many zeroed bytes as their memories have, seen by all ends.
        fence: orders what this process reads and writes.
    """

    def __init__(self, all_rows: Sequence[SharedRows], buffer: NDArray[np.uint8], fence: Fence) -> None:
        self._memories: dict[tuple[Link, ...], RowMemory] = {}
        # All ends compute the same places, since the descriptions are equal and in the same order.
        start = 0
        for rows in all_rows:
            end = start + RowMemory.size_bytes(rows)
            self._memories[rows.links] = RowMemory(rows, buffer[start:end])
            start = end
        self._places = {link: (links, place) for links in self._memories for place, link in enumerate(links)}
        self._fence = fence

    def carries(self, link: Link) -> bool:
        """Whether the link was described."""
        return link in self._places

    def outbox(self, link: Link, layout: Layout, *, slots: int, synchronous: bool = True) -> Outbox:  # noqa: ARG002
        links, place = self._places[link]
        memory = self._memories[links]
        assert (memory.rows.layout, memory.rows.slots) == (layout, slots), f"{link} was described otherwise"
        return SharedOutbox(memory, place, self._fence)

    def inbox(self, links: Sequence[Link], layout: Layout, *, pool: int | None = None) -> Inbox:
        assert pool is None, "links in shared memory have rows of their own"
        memory = self._memories[tuple(links)]
        assert memory.rows.layout == layout, f"{links[0]} was described otherwise"
        return SharedRowInbox(memory, self._fence)
