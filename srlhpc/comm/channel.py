"""The channel contract: one-way links of fixed-size messages, from many outboxes to one inbox.

    outbox                                   inbox
    acquire -> message (free slot)           poll: moves what arrived into slots
    fill in place                            take -> message (filled slot), oldest first
    send                                     release: the slot may receive again
    acquire -> None while no slot is free    is_finished: LAST or death of every sender

A slot of an outbox is free again when the receiver has the message in a slot of its own, so a receiver that does not
release slows its senders down. Nothing here blocks; nothing moves unless somebody polls. Messages of one outbox arrive
in order. The first two numbers of every message's header belong to the channel: FLAGS and SENDER.

Three implementations, in process (`comm/inproc.py`), in memory that ranks of a node share (`comm/node/rows.py`) and
over MPI (`comm/mpi/world.py`), pass one conformance suite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.layout import HEADER_BYTES as HEADER_BYTES
from srlhpc.data.layout import Layout

Array = NDArray[Any]


class Header(IntEnum):
    """Places in the header that every message has."""

    FLAGS = 0
    SENDER = 1


class Flags(IntFlag):
    """Properties of a message, in its header."""

    NONE = 0
    LAST = 1
    """No message follows from this sender; the fields are empty."""


@dataclass
class Message:
    """One slot: a buffer with its header and its fields in place."""

    slot: int
    buffer: NDArray[np.uint8]
    header: NDArray[np.int64]
    fields: Mapping[str, Array]

    @classmethod
    def allocate(cls, layout: Layout, slot: int, buffer: NDArray[np.uint8] | None = None) -> Message:
        """A message of the given layout, in memory of its own unless `buffer` is given."""
        memory = layout.allocate() if buffer is None else buffer
        return cls(slot, memory, layout.header(memory), layout.views(memory))

    @property
    def sender(self) -> int:
        return int(self.header[Header.SENDER])


class Outbox(ABC):
    """The sending end: a few slots for one receiver."""

    @abstractmethod
    def acquire(self) -> Message | None:
        """A free slot, the caller's until it is sent; None while the receiver is behind. Several may be held."""

    @abstractmethod
    def send(self, message: Message, size_bytes: int | None = None) -> None:
        """Sends the slot that `acquire` gave; only its first `size_bytes` if given (header included)."""

    @abstractmethod
    def poll(self) -> bool:
        """Finds out which slots became free; true if any did."""

    @abstractmethod
    def send_last(self) -> bool:
        """Says that nothing follows; false while there is no free slot for it (call again). Idempotent."""

    @property
    @abstractmethod
    def is_drained(self) -> bool:
        """Whether everything sent has been received."""

    @abstractmethod
    def abandon(self) -> None:
        """The receiver is dead: forgets what is under way and accepts no more."""


class Inbox(ABC):
    """The receiving end: slots that messages land in, from known senders (numbers chosen by the plan)."""

    @abstractmethod
    def poll(self) -> bool:
        """Takes in all that has arrived; true if anything did."""

    @abstractmethod
    def take(self) -> Message | None:
        """The oldest message not yet taken (LAST messages are never given out), or None."""

    @abstractmethod
    def release(self, message: Message) -> None:
        """Gives the slot back, so that it can receive again."""

    @abstractmethod
    def forget(self, sender: int) -> None:
        """The sender is dead: it counts as finished; what it had under way is abandoned, never waited for."""

    @property
    @abstractmethod
    def is_finished(self) -> bool:
        """Whether every sender has sent LAST or is dead, and everything received has been taken."""

    @abstractmethod
    def close(self) -> None:
        """Cancels what is still expected. Call once, at the end."""


class Stream(IntEnum):
    """What a link carries; the protocol is in comm/protocol.py."""

    BLOCKS = 0
    REQUESTS = 1
    REPLIES = 2
    GRANT_REQUESTS = 3
    GRANTS = 4
    PULLS = 5
    PARAMETERS = 6
    REPORTS = 7
    COMMANDS = 8
    PARTS = 9
    WINDOWS = 10
    DRAWS = 11
    MATCH_REQUESTS = 12
    MATCHES = 13


@dataclass(frozen=True)
class Link:
    """One way from one role to another. Roles have addresses given by the plan; several may live on one rank."""

    stream: Stream
    source: int
    """Address of the sending role."""
    destination: int
    """Address of the receiving role."""
    index: int = 0
    """Tells links of equal ends apart, for example one per group and policy."""


class Transport(ABC):
    """Makes the ends of links. Both ends name the same link and layout; either may be made first."""

    @abstractmethod
    def outbox(self, link: Link, layout: Layout, *, slots: int, synchronous: bool = True) -> Outbox:
        """The sending end.

        Args:
            link: which way.
            layout: of its messages.
            slots: messages that may be held or under way at once.
            synchronous: a slot is free only when the receiver has taken the message into a slot of its own
                (backpressure); false: it may be free as soon as the message has left (for replies that are awaited).
        """

    @abstractmethod
    def inbox(self, links: Sequence[Link], layout: Layout, *, pool: int | None = None) -> Inbox:
        """The receiving end of several links, which are all from this rank or all from other ranks.

        Args:
            links: the ways here; each has a sender of its own, or an index of its own.
            layout: of their messages.
            pool: None gives every link one slot of its own (`Message.slot` is the link's place in `links`);
                a number gives a pool of that many slots, any of which takes the next message of any link
                (all links then have the same stream, destination and index).
        """

    def close(self) -> None:
        """Closes every inbox that is still open. Call it once, at the end."""


LAST_BYTES = HEADER_BYTES
"""Size of a LAST message on the wire: the header alone."""
