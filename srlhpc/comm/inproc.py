"""Links between roles of one process: the semantics of MPI without MPI, deterministic.

Their state can be saved and loaded: what is under way, and what has landed and is not released. A message that a role
had taken can be taken again, in the same order; a slot that a role had acquired is the role's to save.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    outbox: _InProcessOutbox | None = None
    inbox: _InProcessInbox | None = None
    place: int = 0
    """Place of the link in its inbox."""


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
        assert wire.outbox is None, f"{link} has an outbox already"
        wire.outbox = _InProcessOutbox(link, layout, slots, wire, self._stamps)
        return wire.outbox

    def inbox(self, links: Sequence[Link], layout: Layout, *, pool: int | None = None) -> Inbox:
        wires = [self._wire(link, layout) for link in links]
        sources = [link.source for link in links]
        inbox = _RowInbox(sources, wires, layout) if pool is None else _PoolInbox(sources, wires, layout, pool)
        for place, (link, wire) in enumerate(zip(links, wires, strict=True)):
            assert wire.inbox is None, f"{link} has an inbox already"
            wire.inbox, wire.place = inbox, place
        return inbox

    def save_state(self) -> dict[str, Any]:
        """Copies of the messages that were sent and are not released, by link."""
        stamps = sorted(sent.stamp for wire in self._wires.values() for sent in wire.under_way)
        order = {stamp: place for place, stamp in enumerate(stamps)}
        saved = {_name(link): _saved(wire, order) for link, wire in self._wires.items()}
        return {name: state for name, state in saved.items() if state}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `save_state` gave, into links of the same layouts that carried nothing yet."""
        wires = {_name(link): wire for link, wire in self._wires.items()}
        saved = [(wires[name], kind, message) for name, kinds in state.items() for kind, messages in kinds.items()
                 for message in messages.values()]  # fmt: skip
        # What has landed is numbered by inbox, what is under way by transport. Only the order within each counts.
        for wire, kind, message in sorted(saved, key=lambda one: int(one[2]["order"])):
            content = np.asarray(message["bytes"], np.uint8)
            if kind == "landed":
                assert wire.inbox is not None
                wire.inbox.land_again(wire.place, content)
            else:
                assert wire.outbox is not None
                wire.outbox.send_again(content)

    def _wire(self, link: Link, layout: Layout) -> _Wire:
        wire = self._wires.setdefault(link, _Wire(layout.digest))
        assert wire.digest == layout.digest, f"the two ends of {link} have different layouts"
        return wire


def _name(link: Link) -> str:
    return f"{link.stream.name} {link.source} {link.destination} {link.index}"


def _saved(wire: _Wire, order: Mapping[int, int]) -> dict[str, Any]:
    """A link's state: what has landed, numbered as it arrived at the inbox, and what is under way, in `order`."""
    landed = wire.inbox.landed(wire.place) if wire.inbox is not None else ()
    kinds = {
        "landed": {str(i): {"order": at, "bytes": m.buffer.copy()} for i, (at, m) in enumerate(landed)},
        "under_way": {
            str(i): {"order": order[sent.stamp], "bytes": sent.message.buffer[: sent.size_bytes].copy()}
            for i, sent in enumerate(wire.under_way)
        },
    }
    return {kind: messages for kind, messages in kinds.items() if messages}


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

    def send_again(self, content: NDArray[np.uint8]) -> None:
        """Sends a message that was under way when the state was saved."""
        message = self.acquire()
        assert message is not None, "more messages than slots"
        message.buffer[: content.size] = content
        self.send(message, content.size)

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
        self._landed: dict[int, tuple[int, Message]] = {}
        """Slot to the link's place and the message, in the order of arrival, until it is released."""

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
        # The content has been copied, so the sender may write into its slot again.
        sent.received()
        is_kept = self._arrivals.deliver(place, slot, is_last=bool(slot.header[Header.FLAGS] & Flags.LAST))
        if is_kept:
            self._landed[slot.slot] = (place, slot)
        return is_kept

    def landed(self, place: int) -> list[tuple[int, Message]]:
        """The link's messages that are not released, each with its place in the order of arrival at this inbox."""
        return [(order, message) for order, (of, message) in enumerate(self._landed.values()) if of == place]

    def land_again(self, place: int, content: NDArray[np.uint8]) -> None:
        """A message that was here when the state was saved can be taken (again)."""
        slot = self._slot_for(place)
        slot.buffer[: content.size] = content
        # LAST occupies no slot, so it is never among what was saved here.
        self._landed[slot.slot] = (place, slot)
        self._arrivals.deliver(place, slot, is_last=False)

    @abstractmethod
    def _slot_for(self, place: int) -> Message:
        """A free slot for a message of that link, which is free no longer."""


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

    def _slot_for(self, place: int) -> Message:
        self._occupied[place] = True
        return self._rows[place]

    def release(self, message: Message) -> None:
        assert self._occupied[message.slot], "released twice"
        self._occupied[message.slot] = False
        del self._landed[message.slot]


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

    def _slot_for(self, place: int) -> Message:  # noqa: ARG002
        return self._free.popleft()

    def release(self, message: Message) -> None:
        assert all(message is not free for free in self._free), "released twice"
        self._free.append(message)
        del self._landed[message.slot]
