"""The sending end of a link over MPI."""

from __future__ import annotations

import logging
from collections import deque

from srlhpc.comm.channel import LAST_BYTES, Flags, Header, Link, Message, Outbox
from srlhpc.comm.death_watch import DeathWatch
from srlhpc.comm.mpi.library import MPI
from srlhpc.data.layout import HEADER_BYTES, Layout

log = logging.getLogger(__name__)

SEQUENCE_SHIFT = 8
"""Bits of the flags below the message's number within its outbox. A pool needs that number: a short message that was
sent second can complete first."""
FLAG_BITS = (1 << SEQUENCE_SHIFT) - 1
"""Mask of the bits that are flags."""

# Plain numbers: arithmetic on enumerations is slow, and an IntFlag remembers every value that it ever had.
_FLAGS, _SENDER = int(Header.FLAGS), int(Header.SENDER)

_FAILED = "a send to rank %d failed, so it may be dead: %s"
_FEW = 2
"""Sends that are tested one by one: a test of one that is over costs a tenth of a common test."""

LOST = -1
"""Flags of a slot before it receives. Over UCX, receives from a rank that died can complete without any data."""


class MpiOutbox(Outbox):
    """A few slots with persistent sends to one rank; shorter messages go by a plain send of the same mode.

    Synchronous sends cost the same as eager ones and are the only backpressure that small messages have. To a rank
    that the watch sees gone nothing is begun any more: MPICH 4.3 to 5.0 over UCX would crash.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        rank: int,
        tag: int,
        link: Link,
        layout: Layout,
        slots: int,
        *,
        synchronous: bool,
        watch: DeathWatch | None = None,
    ) -> None:
        self._watch = watch
        self._source = link.source
        self._size_bytes = layout.size_bytes
        self._target = (rank, tag)
        self._begin = comm.Issend if synchronous else comm.Isend
        self._messages = [Message.allocate(layout, slot) for slot in range(slots)]
        # LAST has a message of its own, so that it never waits for a free slot.
        self._messages.append(Message.allocate(Layout.of(()), slots))
        self._headers = [message.header.data for message in self._messages]
        prepare = comm.Ssend_init if synchronous else comm.Send_init
        requests = [prepare([m.buffer, MPI.BYTE], rank, tag) for m in self._messages[:-1]]
        self._persistent = [request for request in requests if isinstance(request, MPI.Prequest)]
        self._requests: list[MPI.Request] = [*self._persistent, MPI.REQUEST_NULL]
        self._under_way: set[int] = set()
        self._free = deque(range(slots))
        self._sequence = 0
        self._said_last = False
        self._abandoned = False

    def acquire(self) -> Message | None:
        if not self._free:
            self.poll()
        return self._messages[self._free.popleft()] if self._free else None

    def send(self, message: Message, size_bytes: int | None = None) -> None:
        assert not self._said_last, "nothing follows LAST"
        self._put(message, 0, self._size_bytes if size_bytes is None else size_bytes)

    def poll(self) -> bool:
        freed = False
        while self._under_way and (slots := self._completed()):
            for slot in slots:
                self._under_way.remove(slot)
                # LAST is sent once: its slot never becomes free.
                if slot < len(self._persistent):
                    self._free.append(slot)
            freed = True
        return freed

    def send_last(self) -> bool:
        if not self._said_last:
            self._put(self._messages[-1], int(Flags.LAST), LAST_BYTES)
        self._said_last = True
        return True

    @property
    def is_drained(self) -> bool:
        return not self._under_way

    def abandon(self) -> None:
        """What is under way is left as it is: its memory must outlive it, and no send to a dead rank can be trusted."""
        self._abandoned = True
        self._under_way.clear()
        self._free.clear()

    def _put(self, message: Message, flags: int, size_bytes: int) -> None:
        if self._watch is not None and not self._abandoned and self._watch.is_gone(self._target[0]):
            self.abandon()
        if self._abandoned:
            return
        assert HEADER_BYTES <= size_bytes <= message.buffer.nbytes
        header = self._headers[message.slot]
        header[_FLAGS] = flags | self._sequence << SEQUENCE_SHIFT
        header[_SENDER] = self._source
        self._sequence += 1
        self._under_way.add(message.slot)
        try:
            self._start(message, size_bytes)
        except MPI.Exception as error:
            # A broken connection can be found out here already. The slot becomes free at the next poll.
            self._requests[message.slot] = MPI.REQUEST_NULL
            log.warning(_FAILED, self._target[0], error)

    def _start(self, message: Message, size_bytes: int) -> None:
        if message.slot < len(self._persistent) and size_bytes == self._size_bytes:
            self._persistent[message.slot].Start()
            self._requests[message.slot] = self._persistent[message.slot]
        else:
            self._requests[message.slot] = self._begin([message.buffer, size_bytes, MPI.BYTE], *self._target)

    def _completed(self) -> list[int]:
        if len(self._under_way) <= _FEW:
            return [slot for slot in self._under_way if self._is_over(slot)]
        try:
            return MPI.Request.Testsome(self._requests) or []
        except MPI.Exception as error:
            log.warning(_FAILED, self._target[0], error)
            return [slot for slot in self._under_way if self._is_over(slot)]

    def _is_over(self, slot: int) -> bool:
        """Whether a send ended, well or not. After an error only the request itself can tell."""
        try:
            return self._requests[slot].Test()
        except MPI.Exception as error:
            log.warning(_FAILED, self._target[0], error)
            return True
