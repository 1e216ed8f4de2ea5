"""Links between roles of one process: the semantics of MPI without MPI, deterministic."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from srlhpc.comm.arrivals import Arrivals
from srlhpc.comm.channel import LAST_BYTES, Flags, Header, Inbox, Link, Message, Outbox, Transport
from srlhpc.data.layout import Layout


@dataclass
class _Sent:
    """One message under way."""

    stamp: int
    """Place in the order of all sends of the transport."""
    message: Message
    size_bytes: int
    received: Callable[[], None]


@dataclass
class _Wire:
    """One link: what was sent and not yet received."""

    digest: str
    under_way: deque[_Sent] = field(default_factory=deque)
    has_outbox: bool = False
    has_inbox: bool = False


class InProcessTransport(Transport):
    """Links inside one process.

    A message is copied when the receiver polls and has a slot for it; a pool takes messages in the order in which
    they were sent. An asynchronous outbox behaves as a synchronous one.
    """

    def __init__(self) -> None:
        self._wires: dict[Link, _Wire] = {}
        self._stamps = itertools.count()

    def outbox(self, link: Link, layout: Layout, *, slots: int, synchronous: bool = True) -> Outbox:  # noqa: ARG002
        wire = self._wire(link, layout)
        assert not wire.has_outbox, f"{link} has an outbox already"
        wire.has_outbox = True
        return _InProcessOutbox(link, layout, slots, wire, self._stamps)

    def inbox(self, links: Sequence[Link], layout: Layout, *, pool: int | None = None) -> Inbox:
        wires = [self._wire(link, layout) for link in links]
        for link, wire in zip(links, wires, strict=True):
            assert not wire.has_inbox, f"{link} has an inbox already"
            wire.has_inbox = True
        sources = [link.source for link in links]
        if pool is None:
            return _RowInbox(sources, wires, layout)
        return _PoolInbox(sources, wires, layout, pool)

    def _wire(self, link: Link, layout: Layout) -> _Wire:
        wire = self._wires.setdefault(link, _Wire(layout.digest))
        assert wire.digest == layout.digest, f"the two ends of {link} have different layouts"
        return wire


class _InProcessOutbox(Outbox):
    def __init__(self, link: Link, layout: Layout, slots: int, wire: _Wire, stamps: itertools.count[int]) -> None:
        self._source = link.source
        self._size_bytes = layout.size_bytes
        self._wire = wire
        self._stamps = stamps
        self._free = deque(Message.allocate(layout, slot) for slot in range(slots))
        self._last = Message.allocate(Layout.of(()), slots)
        self._said_last = False
        self._abandoned = False
        self._freed = False

    def acquire(self) -> Message | None:
        return self._free.popleft() if self._free and not self._abandoned else None

    def send(self, message: Message, size_bytes: int | None = None) -> None:
        assert not self._said_last, "nothing follows LAST"
        if not self._abandoned:
            self._put(message, Flags.NONE, self._size_bytes if size_bytes is None else size_bytes)

    def poll(self) -> bool:
        freed, self._freed = self._freed, False
        return freed

    def send_last(self) -> bool:
        if not (self._said_last or self._abandoned):
            self._put(self._last, Flags.LAST, LAST_BYTES)
        self._said_last = True
        return True

    @property
    def is_drained(self) -> bool:
        return not self._wire.under_way

    def abandon(self) -> None:
        self._abandoned = True
        self._wire.under_way.clear()

    def _put(self, message: Message, flags: Flags, size_bytes: int) -> None:
        message.header[Header.FLAGS] = int(flags)
        message.header[Header.SENDER] = self._source
        self._wire.under_way.append(_Sent(next(self._stamps), message, size_bytes, lambda: self._received(message)))

    def _received(self, message: Message) -> None:
        self._freed = True
        if message is not self._last:
            self._free.append(message)


class _InProcessInbox(Inbox):
    """What rows and pools share."""

    def __init__(self, sources: Sequence[int], wires: Sequence[_Wire]) -> None:
        self._wires = list(wires)
        self._arrivals = Arrivals(sources)

    def take(self) -> Message | None:
        return self._arrivals.take()

    def forget(self, sender: int) -> None:
        for place in self._arrivals.forget(sender):
            self._wires[place].under_way.clear()

    @property
    def is_finished(self) -> bool:
        return self._arrivals.is_finished

    def close(self) -> None:
        self._wires = []

    def _land(self, place: int, slot: Message) -> bool:
        """Copies the link's oldest message into the slot; false if the slot is still free afterwards."""
        sent = self._wires[place].under_way.popleft()
        slot.buffer[: sent.size_bytes] = sent.message.buffer[: sent.size_bytes]
        sent.received()
        return self._arrivals.deliver(place, slot, is_last=bool(slot.header[Header.FLAGS] & Flags.LAST))


class _RowInbox(_InProcessInbox):
    """One slot per link."""

    def __init__(self, sources: Sequence[int], wires: Sequence[_Wire], layout: Layout) -> None:
        super().__init__(sources, wires)
        self._rows = [Message.allocate(layout, place) for place in range(len(wires))]
        self._occupied = [False] * len(wires)

    def poll(self) -> bool:
        arrived = False
        for place, wire in enumerate(self._wires):
            while wire.under_way and not self._occupied[place]:
                self._occupied[place] = self._land(place, self._rows[place])
                arrived = True
        return arrived

    def release(self, message: Message) -> None:
        assert self._occupied[message.slot], "released twice"
        self._occupied[message.slot] = False


class _PoolInbox(_InProcessInbox):
    """Any free slot takes the next message of any link."""

    def __init__(self, sources: Sequence[int], wires: Sequence[_Wire], layout: Layout, pool: int) -> None:
        super().__init__(sources, wires)
        self._free = deque(Message.allocate(layout, slot) for slot in range(pool))

    def poll(self) -> bool:
        arrived = False
        while self._free:
            waiting = [place for place, wire in enumerate(self._wires) if wire.under_way]
            if not waiting:
                break
            place = min(waiting, key=lambda p: self._wires[p].under_way[0].stamp)
            slot = self._free.popleft()
            if not self._land(place, slot):
                self._free.appendleft(slot)
            arrived = True
        return arrived

    def release(self, message: Message) -> None:
        assert all(message is not free for free in self._free), "released twice"
        self._free.append(message)
