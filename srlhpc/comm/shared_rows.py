"""Links through shared memory: one process writes a message in place, another reads it there; nothing is copied.

    memory of one inbox, for its L links:  heads [L] | per link: tail, entries | per link: slots + 1 buffers

A sender writes a free buffer, puts the buffer's number into the next entry, and raises its head: how many messages it
has sent. The receiver raises its tail: how many have landed. It lands one message of a link at a time, and the next when
that one is released, so of slots + 1 buffers one is the receiver's row and the others are the outbox's slots.
Every number has one writer. A fence stands between a message and the head that announces it, and between a head and the
message that it announces; the latter also keeps a tail behind what was read of the message before.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.arrivals import Arrivals
from srlhpc.comm.channel import Header, Inbox, Link, Message, Outbox
from srlhpc.data.layout import ALIGNMENT_BYTES, Layout

Fence = Callable[[], None] | None
"""A memory barrier; None where the processor keeps loads and stores in order by itself."""

_LAST = -1
"""Instead of the number of a buffer: no message follows."""
_LINE_ITEMS = ALIGNMENT_BYTES // 8


@dataclass(frozen=True)
class Rows:
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

    def __init__(self, rows: Rows, buffer: NDArray[np.uint8]) -> None:
        self.rows = rows
        links, entries = len(rows.links), _whole_lines(rows.slots + 2)
        counts = buffer[: _counts_items(rows) * 8].view(np.int64)
        self.heads = memoryview(counts[:links])
        """Messages that each link has sent."""
        lines = counts[_whole_lines(links) :].reshape(links, _LINE_ITEMS + entries)
        self.tails = [memoryview(line[:1]) for line in lines]
        """Of each link: messages that have landed."""
        self.entries = [memoryview(line[_LINE_ITEMS : _LINE_ITEMS + rows.slots + 2]) for line in lines]
        """Of each link: the buffers of the messages sent, in a ring."""
        self._buffers = buffer[counts.nbytes :].reshape(links, rows.slots + 1, rows.layout.size_bytes)

    @staticmethod
    def size_bytes(rows: Rows) -> int:
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
        self._slots, self._ring = memory.rows.slots, memory.rows.slots + 2
        self._heads, self._place = memory.heads, place
        self._tail, self._entries = memory.tails[place], memory.entries[place]
        self._fence = fence
        self._free = deque(range(self._slots + 1))
        self._under_way: deque[int] = deque()
        """Buffers from the last one that landed on: that one is the receiver's until the next has landed."""
        self._sent = self._seen_tail = self._held = 0
        self._said_last = self._abandoned = False

    def acquire(self) -> Message | None:
        if self._sent != self._seen_tail:
            self.poll()
        if self._sent - self._seen_tail + self._held >= self._slots or self._abandoned:
            return None
        self._held += 1
        return self._messages[self._free.popleft()]

    def send(self, message: Message, size_bytes: int | None = None) -> None:  # noqa: ARG002
        assert not self._said_last, "nothing follows LAST"
        self._held -= 1
        if not self._abandoned:
            self._put(message.slot)

    def poll(self) -> bool:
        tail = self._tail[0]
        if tail == self._seen_tail:
            return False
        # What landed before the newest has been released.
        for _ in range(len(self._under_way) - (self._sent - tail) - 1):
            self._free.append(self._under_way.popleft())
        self._seen_tail = tail
        return True

    def send_last(self) -> bool:
        if not (self._said_last or self._abandoned):
            self._put(_LAST)
        self._said_last = True
        return True

    @property
    def is_drained(self) -> bool:
        return self._abandoned or self._tail[0] == self._sent

    def abandon(self) -> None:
        self._abandoned = True

    def _put(self, buffer: int) -> None:
        sent = self._sent
        self._entries[sent % self._ring] = buffer
        self._under_way.append(buffer)
        if self._fence is not None:
            self._fence()
        self._heads[self._place] = self._sent = sent + 1


class SharedRowInbox(Inbox):
    """The receiving end of several links in shared memory: looking at all of them is one comparison."""

    def __init__(self, memory: RowMemory, fence: Fence) -> None:
        links = memory.rows.links
        self._messages = [memory.receiver_messages(place) for place in range(len(links))]
        self._heads, self._all_heads = memory.heads, memory.heads.cast("B")
        self._unpack = struct.Struct(f"{len(links)}q").unpack
        self._tails, self._entries, self._ring = memory.tails, memory.entries, memory.rows.slots + 2
        self._fence = fence
        self._arrivals = Arrivals([link.source for link in links])
        self._landed = [0] * len(links)
        self._occupied = [False] * len(links)
        self._seen = self._all_heads.tobytes() if not links else b""

    def poll(self) -> bool:
        seen = self._all_heads.tobytes()
        if seen == self._seen:
            return False
        self._seen = seen
        landed, occupied = self._landed, self._occupied
        arrived = False
        for place, head in enumerate(self._unpack(seen)):
            if head == landed[place] or occupied[place]:
                continue
            # Read by itself: a copy of many numbers need not be one of whole numbers.
            if self._heads[place] > landed[place]:
                self._land(place)
                arrived = True
            else:
                self._seen = b""
        return arrived

    def take(self) -> Message | None:
        ready = self._arrivals.ready
        return ready.popleft() if ready else None

    def release(self, message: Message) -> None:
        place = message.slot
        assert self._occupied[place], "released twice"
        self._occupied[place] = False
        if self._heads[place] != self._landed[place]:
            self._seen = b""

    def forget(self, sender: int) -> None:
        for place in self._arrivals.forget(sender):
            self._occupied[place] = True

    @property
    def is_finished(self) -> bool:
        return self._arrivals.is_finished

    def close(self) -> None:
        """Nothing is posted, so nothing needs to be cancelled."""

    def _land(self, place: int) -> None:
        number = self._landed[place]
        if self._fence is not None:
            self._fence()
        buffer = self._entries[place][number % self._ring]
        self._landed[place] = self._tails[place][0] = number + 1
        self._occupied[place] = True
        self._arrivals.deliver(place, self._messages[place][buffer], is_last=buffer == _LAST)


def _counts_items(rows: Rows) -> int:
    links = len(rows.links)
    return _whole_lines(links) + links * (_LINE_ITEMS + _whole_lines(rows.slots + 2))


def _whole_lines(items: int) -> int:
    return -(-items // _LINE_ITEMS) * _LINE_ITEMS
