"""How the weights of a policy reach those who act with it: pull, newest wins.

A subscriber sends the version that it has; the source (at the policy's first trainer) answers when it has a newer one
and parks the pull until then. So nothing is sent that was not asked for, a slow subscriber skips versions, and one that
is known to be dead is never sent to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.channel import Inbox, Message, Outbox
from srlhpc.data.layout import Field, Layout

Vector = NDArray[np.float32]

NO_VERSION = -1
"""What a subscriber has before the first vector."""

SUBSCRIPTION_SLOTS = 2
"""Pool of the inbox of a `LinkSubscription`: the vector in use, and the next one."""


class ParameterHeader(IntEnum):
    """Places in the header of pulls and of parameters."""

    VERSION = 2
    """In a pull the version that the subscriber has; in parameters that of the vector."""
    STEPS = 3
    """In parameters, the trained steps of the policy at that version."""


PULL_LAYOUT = Layout.of(())


def parameter_layout(size: int) -> Layout:
    """A flat vector of `size` float32 numbers."""
    return Layout.of([Field("vector", (size,), "float32")])


@dataclass(eq=False)
class _Buffer:
    vector: Vector
    readers: int = 0
    """Local subscriptions that use it now."""


class ParameterSource:
    """The newest parameters of one policy.

    Args:
        size: numbers in the vector.
        pulls: inboxes that pulls arrive in.
        outboxes: address of each subscriber to the way there.
    """

    def __init__(self, size: int, pulls: Sequence[Inbox] = (), outboxes: Mapping[int, Outbox] | None = None) -> None:
        self.version = NO_VERSION
        self.steps = 0
        self._size = size
        self._pulls = list(pulls)
        self._outboxes = dict(outboxes or {})
        self._parked: dict[int, int] = {}
        self._newest = _Buffer(np.zeros(size, np.float32))
        self._buffers = [self._newest]

    def publish(self, version: int, write: Callable[[Vector], None], *, steps: int = 0) -> bool:
        """Makes a version the newest; false, and nothing happens, if it is not newer.

        Args:
            version: of the weights.
            write: fills the vector it is given.
            steps: trained steps of the policy at that version, which schedules of acting follow.
        """
        if version <= self.version:
            return False
        buffer = self._free_buffer()
        write(buffer.vector)
        self._newest, self.version, self.steps = buffer, version, steps
        return True

    @property
    def vector(self) -> Vector:
        """The newest parameters."""
        return self._newest.vector

    def poll(self) -> bool:
        """Answers those who have an older version; true if anything was received or sent."""
        did = self._take_pulls()
        for address, have in list(self._parked.items()):
            if have < self.version and self._send(address):
                del self._parked[address]
                did = True
        return did

    @property
    def is_sending(self) -> bool:
        """Whether parameters are on their way, which may take long where they are many."""
        for outbox in self._outboxes.values():
            # Otherwise polled only when there is something to send: what has arrived would count as under way.
            outbox.poll()
        return not all(outbox.is_drained for outbox in self._outboxes.values())

    def forget(self, address: int) -> None:
        """The subscriber is dead: it is never sent to again."""
        self._parked.pop(address, None)
        outbox = self._outboxes.pop(address, None)
        if outbox is not None:
            outbox.abandon()
            for inbox in self._pulls:
                inbox.forget(address)

    def close(self) -> None:
        """Answers nothing more."""
        self._parked.clear()
        for inbox in self._pulls:
            inbox.close()
        self._pulls = []

    def borrow(self, previous: _Buffer | None) -> _Buffer:
        """The newest buffer, unchanged until it is given back as `previous`."""
        if previous is not None:
            previous.readers -= 1
        self._newest.readers += 1
        return self._newest

    def _free_buffer(self) -> _Buffer:
        for buffer in self._buffers:
            if buffer is not self._newest and not buffer.readers:
                return buffer
        # At most one for each local reader, the newest, and the one that is written next.
        self._buffers.append(_Buffer(np.zeros(self._size, np.float32)))
        return self._buffers[-1]

    def _take_pulls(self) -> bool:
        did = False
        for inbox in self._pulls:
            did |= inbox.poll()
            while (pull := inbox.take()) is not None:
                # A subscriber that was forgotten may still have a pull under way.
                if pull.sender in self._outboxes:
                    self._parked[pull.sender] = int(pull.header[ParameterHeader.VERSION])
                inbox.release(pull)
        return did

    def _send(self, address: int) -> bool:
        outbox = self._outboxes[address]
        outbox.poll()
        message = outbox.acquire()
        if message is None:
            return False
        message.header[ParameterHeader.VERSION] = self.version
        message.header[ParameterHeader.STEPS] = self.steps
        message.fields["vector"][:] = self._newest.vector
        outbox.send(message)
        return True


class ParameterSubscription(ABC):
    """One subscriber's view of a policy's parameters."""

    @abstractmethod
    def poll(self) -> bool:
        """Asks, receives; true if `version` and `vector` changed."""

    @property
    @abstractmethod
    def version(self) -> int:
        """Version of the vector; `NO_VERSION` before the first."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Trained steps of the policy at that version."""

    @property
    @abstractmethod
    def vector(self) -> Vector:
        """The newest parameters that arrived; the same memory and numbers until the next `poll`."""

    @abstractmethod
    def close(self) -> None:
        """Asks for nothing more."""


class LocalSubscription(ParameterSubscription):
    """Reads a source of the same process, without a copy."""

    def __init__(self, source: ParameterSource) -> None:
        self._source = source
        self._buffer = source.borrow(None)
        self._version, self._steps = source.version, source.steps

    def poll(self) -> bool:
        if self._source.version == self._version:
            return False
        self._buffer = self._source.borrow(self._buffer)
        self._version, self._steps = self._source.version, self._source.steps
        return True

    @property
    def version(self) -> int:
        return self._version

    @property
    def steps(self) -> int:
        return self._steps

    @property
    def vector(self) -> Vector:
        return self._buffer.vector

    def close(self) -> None:
        self._buffer.readers -= 1
        # The vector stays readable, and a second close counts down nobody's readers.
        self._buffer = _Buffer(self._buffer.vector)


class LinkSubscription(ParameterSubscription):
    """Pulls over links; the vector stays where it landed.

    Args:
        size: numbers in the vector.
        pulls: the way to the source.
        parameters: an inbox of one link with a pool of `SUBSCRIPTION_SLOTS`.
    """

    def __init__(self, size: int, pulls: Outbox, parameters: Inbox) -> None:
        self._pulls = pulls
        self._parameters = parameters
        self._is_waiting = False
        self._is_closed = False
        self._version, self._steps = NO_VERSION, 0
        self._vector: Vector = np.zeros(size, np.float32)
        self._held: Message | None = None

    def poll(self) -> bool:
        if self._is_closed:
            return False
        self._parameters.poll()
        message = self._parameters.take()
        if message is not None:
            self._is_waiting = False
            self._hold(message)
        self._pulls.poll()
        self._pull()
        return message is not None

    @property
    def version(self) -> int:
        return self._version

    @property
    def steps(self) -> int:
        return self._steps

    @property
    def vector(self) -> Vector:
        return self._vector

    def close(self) -> None:
        self._is_closed = True
        self._parameters.close()

    def _hold(self, message: Message) -> None:
        if self._held is not None:
            self._parameters.release(self._held)
        self._held = message
        self._version = int(message.header[ParameterHeader.VERSION])
        self._steps = int(message.header[ParameterHeader.STEPS])
        self._vector = message.fields["vector"]

    def _pull(self) -> None:
        """One pull at a time: an answer always finds a free slot."""
        if self._is_waiting:
            return
        message = self._pulls.acquire()
        if message is not None:
            message.header[ParameterHeader.VERSION] = self._version
            self._pulls.send(message)
            self._is_waiting = True
