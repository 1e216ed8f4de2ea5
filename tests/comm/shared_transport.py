"""Links with rows in shared memory; the others in process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from srlhpc.comm.channel import Inbox, Link, Outbox, Transport
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.node.rows import RowMemory, SharedRows
from srlhpc.comm.node.transport import NodeTransport
from srlhpc.data.layout import Layout
from tests.comm.scenarios import Play, run_in_process


class _Describing(Transport):
    """Writes down the ends that are made."""

    def __init__(self) -> None:
        self._transport = InProcessTransport()
        self.slots: dict[Link, tuple[Layout, int]] = {}
        self.inboxes: list[tuple[tuple[Link, ...], Layout, int | None]] = []

    def outbox(self, link: Link, layout: Layout, *, slots: int, synchronous: bool = True) -> Outbox:
        self.slots[link] = (layout, slots)
        return self._transport.outbox(link, layout, slots=slots, synchronous=synchronous)

    def inbox(self, links: Sequence[Link], layout: Layout, *, pool: int | None = None) -> Inbox:
        self.inboxes.append((tuple(links), layout, pool))
        return self._transport.inbox(links, layout, pool=pool)


def rows_of(play: Play) -> list[SharedRows]:
    """The inboxes with rows that a play makes."""
    described = _Describing()
    run_in_process(play, described)
    rows = [
        SharedRows(links, layout, described.slots[links[0]][1])
        for links, layout, pool in described.inboxes
        if pool is None
    ]
    received = {link for links, _, _ in described.inboxes for link in links}
    return rows + [
        SharedRows((link,), layout, slots) for link, (layout, slots) in described.slots.items() if link not in received
    ]


class SharedRowsFabric(Transport):
    """All ends in one process; what is described lies in one buffer."""

    def __init__(self, all_rows: Sequence[SharedRows]) -> None:
        buffer = np.zeros(sum(map(RowMemory.size_bytes, all_rows)) + 64, np.uint8)
        self._node = NodeTransport(all_rows, buffer[-buffer.ctypes.data % 64 :], lambda: None)
        self._rest = InProcessTransport()

    def outbox(self, link: Link, layout: Layout, *, slots: int, synchronous: bool = True) -> Outbox:
        return self._way(link).outbox(link, layout, slots=slots, synchronous=synchronous)

    def inbox(self, links: Sequence[Link], layout: Layout, *, pool: int | None = None) -> Inbox:
        return self._way(links[0]).inbox(links, layout, pool=pool)

    def _way(self, link: Link) -> Transport:
        return self._node if self._node.carries(link) else self._rest
