"""The receiving end of links over MPI with a row per link."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from srlhpc.comm.arrivals import Arrivals
from srlhpc.comm.channel import Flags, Header, Inbox, Message
from srlhpc.comm.mpi.library import MPI
from srlhpc.comm.mpi.outbox import FLAG_BITS, LOST
from srlhpc.data.layout import Layout

log = logging.getLogger(__name__)

_FLAGS, _LAST = int(Header.FLAGS), int(Flags.LAST)
_CANCEL_SECONDS = 0.5
_FAILED = "a receive failed, so a sender may be dead: %s"


class PostedReceives:
    """Persistent receives, one per slot.

    A posted receive whose sender died can stay for ever: it is abandoned, and its memory is kept.
    """

    def __init__(self, comm: MPI.Comm, slots: Sequence[Message], sources: Sequence[int], tags: Sequence[int]) -> None:
        self._headers = [slot.header.data for slot in slots]
        self._persistent = [
            comm.Recv_init([slot.buffer, MPI.BYTE], source, tag)
            for slot, source, tag in zip(slots, sources, tags, strict=True)
        ]
        self._requests: list[MPI.Request] = [*self._persistent]
        self._active: set[int] = set()
        self._is_closed = False
        for slot in range(len(slots)):
            self.start(slot)

    def start(self, slot: int) -> None:
        """Posts the receive of a slot that is not posted."""
        assert slot not in self._active, "released twice"
        if not self._is_closed:
            # A receive that completes without any data leaves this as it is.
            self._headers[slot][_FLAGS] = LOST
            try:
                self._persistent[slot].Start()
            except MPI.Exception as error:
                log.warning(_FAILED, error)
                self._bury(slot)
            else:
                self._active.add(slot)

    def completed(self) -> list[int]:
        """Slots whose message is complete; call until empty, since MPICH gives one per call."""
        if not self._active:
            return []
        try:
            # One test costs half of what a common test of one does.
            if len(self._requests) == 1:
                slots = [0] if self._requests[0].Test() else []
            else:
                slots = MPI.Request.Testsome(self._requests) or []
        except MPI.Exception as error:
            slots = self._completed_after(error)
        self._active.difference_update(slots)
        return slots

    def abandon(self, slot: int) -> None:
        """Expects nothing more in this slot."""
        if slot in self._active:
            self._persistent[slot].Cancel()
        self._bury(slot)

    def close(self) -> None:
        """Cancels what is posted, for a bounded time: a receive in mid-message may never end."""
        if self._is_closed:
            return
        self._is_closed = True
        for slot in self._active:
            self._persistent[slot].Cancel()
        deadline = time.monotonic() + _CANCEL_SECONDS
        while self._active and time.monotonic() < deadline:
            if not self.completed():
                time.sleep(50e-6)
        for slot in sorted(self._active):
            self._bury(slot)
        for request in self._requests:
            if request != MPI.REQUEST_NULL:
                request.Free()
        self._requests = []

    def _bury(self, slot: int) -> None:
        self._requests[slot] = MPI.REQUEST_NULL
        self._active.discard(slot)

    def _completed_after(self, error: MPI.Exception) -> list[int]:
        """After an error only the requests themselves tell which one failed: it is inactive, with an empty status."""
        log.warning(_FAILED, error)
        completed, status = [], MPI.Status()
        for slot in sorted(self._active):
            try:
                is_over = self._requests[slot].Test(status)
            except MPI.Exception:
                self._bury(slot)
                continue
            # One that was complete in the failed common test has an empty status now, but its data is here.
            if is_over and (status.Get_source() >= 0 or self._headers[slot][_FLAGS] != LOST):
                completed.append(slot)
            elif is_over:
                self._bury(slot)
        return completed


class MpiRowInbox(Inbox):
    """One slot and one posted receive per link; the link's sender is known by rank and tag."""

    def __init__(
        self, comm: MPI.Comm, layout: Layout, senders: Sequence[int], ranks: Sequence[int], tags: Sequence[int]
    ) -> None:
        self._rows = [Message.allocate(layout, place) for place in range(len(senders))]
        self._headers = [row.header.data for row in self._rows]
        self._arrivals = Arrivals(senders)
        self._receives = PostedReceives(comm, self._rows, ranks, tags)

    def poll(self) -> bool:
        arrived = False
        while places := self._receives.completed():
            for place in places:
                header = self._headers[place]
                stamp = header[_FLAGS]
                if stamp != LOST:
                    header[_FLAGS] = flags = stamp & FLAG_BITS
                    self._arrivals.deliver(place, self._rows[place], is_last=bool(flags & _LAST))
            arrived = True
        return arrived

    def take(self) -> Message | None:
        return self._arrivals.take()

    def release(self, message: Message) -> None:
        # Nothing follows LAST, so a receive that was posted now would have to be cancelled.
        if self._arrivals.is_open(message.slot):
            self._receives.start(message.slot)

    def forget(self, sender: int) -> None:
        for place in self._arrivals.forget(sender):
            self._receives.abandon(place)

    @property
    def is_finished(self) -> bool:
        return self._arrivals.is_finished

    def close(self) -> None:
        self._receives.close()
