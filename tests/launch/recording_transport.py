"""A transport that only writes down which ends are made, with the layout of each."""

from __future__ import annotations

from collections.abc import Sequence

from srlhpc.comm.channel import Inbox, Link, Outbox, Transport
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.data.layout import Layout


class RecordingTransport(Transport):
    """Link to the layout's digest, at either end."""

    def __init__(self) -> None:
        self._transport = InProcessTransport()
        self.outboxes: dict[Link, str] = {}
        self.inboxes: dict[Link, str] = {}

    def outbox(self, link: Link, layout: Layout, *, slots: int, synchronous: bool = True) -> Outbox:
        self.outboxes[link] = layout.digest
        return self._transport.outbox(link, layout, slots=slots, synchronous=synchronous)

    def inbox(self, links: Sequence[Link], layout: Layout, *, pool: int | None = None) -> Inbox:
        self.inboxes |= dict.fromkeys(links, layout.digest)
        return self._transport.inbox(links, layout, pool=pool)
