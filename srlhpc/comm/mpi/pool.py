"""The receiving end of links over MPI with a pool of slots for all of them."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Sequence

from srlhpc.comm.arrivals import Arrivals
from srlhpc.comm.channel import Flags, Header, Inbox, Message
from srlhpc.comm.mpi.library import MPI
from srlhpc.comm.mpi.outbox import FLAG_BITS, LOST, SEQUENCE_SHIFT
from srlhpc.data.layout import Layout

log = logging.getLogger(__name__)

_FLAGS, _SENDER = int(Header.FLAGS), int(Header.SENDER)
_CLOSE_SECONDS = 0.5
_FAILED = "a receive from rank %d failed, so it may be dead: %s"


class MatchedReceives:
    """Receives into free slots, each begun when a probe has found a message.

    Not posted beforehand with ANY_SOURCE: MPICH 5.0.2 over UCX loses completions of small messages of such receives
    as soon as two senders are on other nodes. Nothing is posted for a sender that has sent nothing, so nothing needs
    to be cancelled; only a message in transfer when its sender dies may never end: its slot then gets other memory.
    """

    def __init__(self, comm: MPI.Comm, layout: Layout, slots: int, tag: int) -> None:
        self.slots = [Message.allocate(layout, slot) for slot in range(slots)]
        self._comm = comm
        self._layout = layout
        self._tag = tag
        self._free = deque(range(slots))
        self._requests: list[MPI.Request] = [MPI.REQUEST_NULL] * slots
        self._active: dict[int, int] = {}
        """Slot to the rank that it receives from."""
        self._abandoned: list[tuple[MPI.Request, Message]] = []
        self._status = MPI.Status()
        self._is_closed = False

    def give(self, slot: int) -> None:
        """The slot may receive again."""
        assert slot not in self._active, "released twice"
        self._free.append(slot)

    def match(self) -> None:
        """Begins to receive what has been sent, for as long as there are slots."""
        while self._free and not self._is_closed:
            try:
                message = self._comm.Improbe(MPI.ANY_SOURCE, self._tag, self._status)
            except MPI.Exception as error:
                # Open MPI refuses to look for messages from anybody until the deaths that it knows are acknowledged.
                log.warning("some sender may be dead: %s", error)
                with contextlib.suppress(MPI.Exception, NotImplementedError):
                    self._comm.Ack_failed()
                return
            if message is None:
                return
            slot = self._free.popleft()
            self.slots[slot].header[_FLAGS] = LOST
            source = self._status.Get_source()
            try:
                self._requests[slot] = message.Irecv([self.slots[slot].buffer, MPI.BYTE])
            except MPI.Exception as error:
                log.warning(_FAILED, source, error)
                self.give(slot)
            else:
                self._active[slot] = source

    def abandon(self, rank: int) -> None:
        """The rank is dead: what it had in transfer may never end, so those slots get other memory and are free."""
        for slot in [slot for slot, source in self._active.items() if source == rank]:
            self._abandoned.append((self._requests[slot], self.slots[slot]))
            self._requests[slot] = MPI.REQUEST_NULL
            self.slots[slot] = Message.allocate(self._layout, slot)
            del self._active[slot]
            self.give(slot)

    def completed(self) -> list[int]:
        """Slots whose message is complete; call until empty.

        One test per slot: after an error of one, a common test no longer tells which of the others were complete.
        """
        completed = []
        for slot in list(self._active):
            try:
                is_over, is_whole = self._requests[slot].Test(self._status), True
            except MPI.Exception as error:
                log.warning(_FAILED, self._active[slot], error)
                is_over, is_whole = True, False
            if not is_over:
                continue
            del self._active[slot]
            self._requests[slot] = MPI.REQUEST_NULL
            if is_whole:
                completed.append(slot)
            else:
                self.give(slot)
        return completed

    def close(self) -> None:
        """Begins nothing more; gives messages in transfer a bounded time to end."""
        self._is_closed = True
        deadline = time.monotonic() + _CLOSE_SECONDS
        while self._active and time.monotonic() < deadline:
            if not self.completed():
                time.sleep(50e-6)


class MpiPoolInbox(Inbox):
    """A pool of slots that receive whatever comes next; the sender is in the header.

    Messages of one sender can complete out of order (a short one overtakes a long one in transfer); they are handed
    out by their number.
    """

    def __init__(
        self, comm: MPI.Comm, layout: Layout, senders: Sequence[int], ranks: Sequence[int], tag: int, pool: int
    ) -> None:
        """`ranks` are those of the senders."""
        self._ranks = list(ranks)
        self._arrivals = Arrivals(senders)
        self._place = {sender: place for place, sender in enumerate(senders)}
        self._next = [0] * len(senders)
        self._early: list[dict[int, Message]] = [{} for _ in senders]
        self._receives = MatchedReceives(comm, layout, pool, tag)

    def poll(self) -> bool:
        arrived = False
        self._receives.match()
        while slots := self._receives.completed():
            for slot in slots:
                self._land(self._receives.slots[slot])
            arrived = True
            self._receives.match()
        return arrived

    def take(self) -> Message | None:
        return self._arrivals.take()

    def release(self, message: Message) -> None:
        self._receives.give(message.slot)

    def forget(self, sender: int) -> None:
        """What landed before is handed out, even behind a message that was lost."""
        place = self._place.get(sender)
        if place is None:
            return
        for number in sorted(self._early[place]):
            self._deliver(place, self._early[place].pop(number))
        self._arrivals.forget(sender)
        self._receives.abandon(self._ranks[place])

    @property
    def is_finished(self) -> bool:
        return self._arrivals.is_finished

    def close(self) -> None:
        self._receives.close()

    def _land(self, message: Message) -> None:
        stamp = message.header.item(_FLAGS)
        if stamp == LOST:
            self._receives.give(message.slot)
            return
        message.header[_FLAGS] = stamp & FLAG_BITS
        place = self._place[message.header.item(_SENDER)]
        number = stamp >> SEQUENCE_SHIFT
        if number != self._next[place]:
            self._early[place][number] = message
        else:
            self._deliver_in_order(place, message)
        if self._early[place] and not self._arrivals.is_open(place):
            self._drop_early(place)

    def _deliver_in_order(self, place: int, message: Message) -> None:
        early, ready = self._early[place], message
        while True:
            self._deliver(place, ready)
            self._next[place] += 1
            if self._next[place] not in early:
                return
            ready = early.pop(self._next[place])

    def _drop_early(self, place: int) -> None:
        """A sender that was given up and still sends: its slots go back to the pool."""
        for message in self._early[place].values():
            self._receives.give(message.slot)
        self._early[place].clear()

    def _deliver(self, place: int, message: Message) -> None:
        is_last = bool(message.header.item(_FLAGS) & Flags.LAST)
        if not self._arrivals.deliver(place, message, is_last=is_last):
            self._receives.give(message.slot)
