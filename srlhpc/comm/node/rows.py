"""Links through shared memory: one process writes a message in place, another reads it there; nothing is copied.

    memory of one inbox, of each of its links:  head, entries | of each link: tail | of each link: slots + 1 buffers

A sender writes a free buffer, puts the buffer's number into the next entry, and raises its head: how many messages it
has sent. The receiver raises its tail: how many have landed. It lands one message of a link at a time, and the next
when that one is released, so of slots + 1 buffers one is the receiver's row and the others are the outbox's slots.
Every number has one writer. A fence (comm/fence.py) stands between a message and the head that announces it, and
between a head and the message that it announces; the latter also keeps a tail behind what was read of the message
before. A third stands between a tail and the buffers that it frees.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.arrivals import Arrivals
from srlhpc.comm.channel import Header, Inbox, Link, Message, Outbox
from srlhpc.comm.fence import Fence
from srlhpc.data.layout import ALIGNMENT_BYTES, Layout

_LAST = -1
"""Written in place of a buffer's number: no message follows."""
_NONE = 1 << 62
"""More messages than a link can bring."""
_LINE_ITEMS = ALIGNMENT_BYTES // 8


@dataclass(frozen=True)
class SharedRows:
    """The links of one inbox; both ends describe them alike.

    Args:
        links: from other ranks.
        layout: of their messages.
        slots: of every outbox.
    """

    links: tuple[Link, ...]
    layout: Layout
    slots: int


class RowMemory:
    """Where everything of one inbox lies.

    Args:
        rows: of the inbox.
        buffer: `size_bytes(rows)` bytes on a 64-byte border, zeroed at the start, seen by all ends.
    """

    def __init__(self, rows: SharedRows, buffer: NDArray[np.uint8]) -> None:
        self.rows = rows
        links, items = len(rows.links), _sender_items(rows)
        counts = buffer[: _counts_items(rows) * 8].view(np.int64)
        self.said = counts[: links * items].data
        """What the senders write: of each link, how many messages it has sent, and in which buffers, in a ring."""
        self.senders = [line.data for line in counts[: links * items].reshape(links, items)]
        """The same by link. A head and its entries are mostly one line of the processor's cache."""
        self.tails = [line[:1].data for line in counts[links * items :].reshape(links, _LINE_ITEMS)]
        """Number of messages that have landed, of each link."""
        buffers = buffer[counts.nbytes : self.size_bytes(rows)]
        self._buffers = buffers.reshape(links, rows.slots + 1, rows.layout.size_bytes)

    @staticmethod
    def size_bytes(rows: SharedRows) -> int:
        return _counts_items(rows) * 8 + len(rows.links) * (rows.slots + 1) * rows.layout.size_bytes

    def sender_messages(self, place: int) -> list[Message]:
        """The buffers of a link, as its outbox sees them."""
        made = [Message.allocate(self.rows.layout, slot, memory) for slot, memory in enumerate(self._buffers[place])]
        for message in made:
            message.header[Header.SENDER] = self.rows.links[place].source
        return made

    def receiver_messages(self, place: int) -> list[Message]:
        """The same as the inbox sees them: in the row of the link."""
        return [Message.allocate(self.rows.layout, place, memory) for memory in self._buffers[place]]


class SharedOutbox(Outbox):
    """The sending end of one link in shared memory."""

    def __init__(self, memory: RowMemory, place: int, fence: Fence) -> None:
        self._messages = memory.sender_messages(place)
        self._said, self._tail, self._ring = memory.senders[place], memory.tails[place], memory.rows.slots + 2
        self._fence = fence
        # As if the last buffer had carried a message before the first, which the receiver still holds.
        self._free, self._said[self._ring] = self._messages[:-1], self._messages[-1].slot
        self._released = -1
        """Number of the newest message that the receiver holds: those before it are released."""
        self._sent = 0
        self._has_ended = self._abandoned = False

    def acquire(self) -> Message | None:
        free = self._free
        return free.pop() if free or self.poll() else None

    def send(self, message: Message, size_bytes: int | None = None) -> None:  # noqa: ARG002
        assert not self._has_ended, "nothing follows LAST"
        if not self._abandoned:
            self._announce(message.slot)

    def poll(self) -> bool:
        newest = self._tail[0] - 1
        if newest == self._released or self._abandoned:
            return False
        if self._fence is not None:
            self._fence()
        for number in range(self._released, newest):
            self._free.append(self._messages[self._said[1 + number % self._ring]])
        self._released = newest
        return True

    def send_last(self) -> bool:
        if not (self._has_ended or self._abandoned):
            self._announce(_LAST)
        self._has_ended = True
        return True

    @property
    def is_drained(self) -> bool:
        return self._abandoned or self._tail[0] == self._sent

    def abandon(self) -> None:
        self._abandoned = True
        self._free.clear()

    def _announce(self, buffer: int) -> None:
        sent = self._sent
        # The entry first: whoever sees the new head may read it at once.
        self._said[1 + sent % self._ring] = buffer
        if self._fence is not None:
            self._fence()
        self._said[0] = self._sent = sent + 1


class SharedRowInbox(Inbox):
    """The receiving end of several links in shared memory: looking at all of them is one comparison."""

    def __init__(self, memory: RowMemory, fence: Fence) -> None:
        links = memory.rows.links
        self._messages = [memory.receiver_messages(place) for place in range(len(links))]
        self._said, self._senders, self._tails = memory.said.cast("B"), memory.senders, memory.tails
        self._heads_of = struct.Struct(f"q{(_sender_items(memory.rows) - 1) * 8}x" * len(links)).unpack
        self._ring = memory.rows.slots + 2
        self._fence = fence
        self._arrivals = Arrivals([link.source for link in links])
        self._ready = self._arrivals.ready
        self._landed = [0] * len(links)
        self._awaited = [0] * len(links)
        """Head of each link beyond which a message can land: none while its row is taken."""
        self._seen = b""

    def poll(self) -> bool:
        seen = self._said.tobytes()
        if seen == self._seen:
            return False
        self._seen = seen
        awaited, arrived = self._awaited, False
        for place, head in enumerate(self._heads_of(seen)):
            if head <= awaited[place]:
                continue
            # Read by itself: a copy of many numbers need not be one of whole numbers.
            if self._senders[place][0] > awaited[place]:
                self._land(place)
                arrived = True
            else:
                # The copy was torn: these bytes must be looked at again, even if they are the same then.
                self._seen = b""
        return arrived

    def take(self) -> Message | None:
        return self._ready.popleft() if self._ready else None

    def release(self, message: Message) -> None:
        place = message.slot
        landed = self._landed[place]
        assert self._awaited[place] == _NONE, "released twice"
        self._awaited[place] = landed
        # The next message may be among the bytes that were seen while this one held the row.
        if self._senders[place][0] != landed:
            self._seen = b""

    def forget(self, sender: int) -> None:
        for place in self._arrivals.forget(sender):
            # No head exceeds this, so nothing more lands.
            self._awaited[place] = self._landed[place] = _NONE

    @property
    def is_finished(self) -> bool:
        return self._arrivals.is_finished

    def close(self) -> None:
        """Nothing is posted, so nothing needs to be cancelled."""

    def _land(self, place: int) -> None:
        if self._fence is not None:
            self._fence()
        number = self._landed[place]
        buffer = self._senders[place][1 + number % self._ring]
        # Raised when the message lands, not when it is released: its buffer is the receiver's row meanwhile.
        self._landed[place] = self._tails[place][0] = number + 1
        self._awaited[place] = _NONE
        if buffer != _LAST:
            self._ready.append(self._messages[place][buffer])
        else:
            self._arrivals.end(place)


def _counts_items(rows: SharedRows) -> int:
    return len(rows.links) * (_sender_items(rows) + _LINE_ITEMS)


def _sender_items(rows: SharedRows) -> int:
    """A head and slots + 2 entries: the buffers, and LAST."""
    return _whole_lines(1 + rows.slots + 2)


def _whole_lines(items: int) -> int:
    return -(-items // _LINE_ITEMS) * _LINE_ITEMS
