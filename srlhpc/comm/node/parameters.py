"""One copy of the parameters per node: a leader pulls them, the others read its copy in shared memory.

The memory holds two vectors, each with a sequence number that is odd while it is being written (a seqlock): a reader
that sees the number change has read a mixture and keeps what it had. Fences (comm/fence.py) stand between that number
and the vector, on both sides, in writers and in readers. Members show that they live by counting; when the
leader's count stands still for too long, the next living member leads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.fence import Fence
from srlhpc.comm.parameters import NO_VERSION, ParameterSubscription, Vector

Counts = NDArray[np.int64]

VECTORS = 2
GONE = -1
"""Count of a member that left in order."""

_LEADER = 0
_SLOTS = 1
"""First of the triples (sequence, version + 1, trained steps) of the vectors."""
_SLOT_ITEMS = 3
_BEATS = _SLOTS + _SLOT_ITEMS * VECTORS
_ALIGNMENT_ITEMS = 16


class Stamp(NamedTuple):
    """What is published with a vector."""

    version: int
    steps: int = 0
    """Trained steps of the policy at that version."""


class NodeMemory:
    """The layout of the shared memory, and how it is read and written.

    Args:
        buffer: `size_bytes(members, size)` bytes, zeroed at the start, seen by all members.
        members: subscribers on this node.
        size: numbers in the vector.
        fence: orders what this process reads and writes.
    """

    def __init__(self, buffer: NDArray[np.uint8], members: int, size: int, fence: Fence) -> None:
        head = _head_items(members) * 8
        control = buffer[:head].view(np.int64)
        self._leader = control[_LEADER : _LEADER + 1]
        self._slots = control[_SLOTS:_BEATS].reshape(VECTORS, _SLOT_ITEMS)
        self.beats: Counts = control[_BEATS : _BEATS + members]
        """One count per member; each writes its own."""
        stride = _vector_items(size)
        self._vectors = buffer[head : head + VECTORS * stride * 4].view(np.float32).reshape(VECTORS, stride)[:, :size]
        self._fence = fence

    @staticmethod
    def size_bytes(members: int, size: int) -> int:
        return _head_items(members) * 8 + VECTORS * _vector_items(size) * 4

    def fence(self) -> None:
        """What was read or written before stays before what comes after."""
        if self._fence is not None:
            self._fence()

    @property
    def leader(self) -> int:
        """Place of the member that pulls."""
        return int(self._leader[0])

    @leader.setter
    def leader(self, place: int) -> None:
        self._leader[0] = place

    def write(self, stamp: Stamp, vector: Vector) -> None:
        """Puts a vector beside the newest one.

        A vector that a former leader left half written is not touched while there is another: that leader may only
        be asleep. Where there is none, the older one is taken over.
        """
        whole = [slot for slot in range(VECTORS) if not self._slots[slot, 0] % 2]
        slot = min(whole or range(VECTORS), key=lambda s: int(self._slots[s, 1]))
        # Odd while it is written. If a dead leader left it odd, it becomes another odd number, which a reader notices.
        self._slots[slot, 0] += 2 if self._slots[slot, 0] % 2 else 1
        self.fence()
        self._vectors[slot] = vector
        self._slots[slot, 1:] = stamp.version + 1, stamp.steps
        self.fence()
        self._slots[slot, 0] += 1

    def read(self, newer_than: int, out: Vector) -> Stamp | None:
        """Copies the newest whole vector; its stamp, or None if there is none newer or it changed meanwhile.

        After None `out` is only to be trusted if nothing newer was there: give it a buffer that is not in use.
        """
        sequences = [int(sequence) for sequence in self._slots[:, 0]]
        self.fence()
        stamps = [Stamp(int(version) - 1, int(steps)) for _, version, steps in self._slots]
        newest = max(range(VECTORS), key=lambda slot: (sequences[slot] % 2 == 0, stamps[slot].version))
        if sequences[newest] % 2 or stamps[newest].version <= newer_than:
            return None
        out[:] = self._vectors[newest]
        self.fence()
        return stamps[newest] if int(self._slots[newest, 0]) == sequences[newest] else None


class Succession:
    """Who leads, as one member sees it: the leader while it lives, else the next living member after it.

    A member lives while its count changes; how long ago that was is measured by the own clock alone.

    Args:
        place: the member that asks.
        members: of the node.
        patience_seconds: a count that stands still for longer belongs to a dead member. Must exceed the longest time
            between two polls.
        clock: seconds, monotonic.
    """

    def __init__(self, place: int, members: int, patience_seconds: float, clock: Callable[[], float]) -> None:
        self._place = place
        self._patience_seconds = patience_seconds
        self._clock = clock
        self._seen = [(0, clock())] * members

    def leader(self, leader: int, beats: Sequence[int]) -> int:
        """The member that should lead, given the present leader and everyone's count."""
        now = self._clock()
        for place, count in enumerate(beats):
            if self._seen[place][0] != count:
                self._seen[place] = (count, now)
        members = len(self._seen)
        for place in ((leader + step) % members for step in range(members)):
            if self._lives(place, now):
                return place
        return self._place

    def _lives(self, place: int, now: float) -> bool:
        count, changed = self._seen[place]
        return place == self._place or (count != GONE and now - changed <= self._patience_seconds)


class SharedSubscription(ParameterSubscription):
    """A member of a node: pulls for all if it leads, else reads what the leader pulled.

    Args:
        memory: shared by the members.
        place: of this member.
        upstream: used only while this member leads.
        size: numbers in the vector.
        succession: says who leads.
    """

    def __init__(
        self, memory: NodeMemory, place: int, upstream: ParameterSubscription, size: int, succession: Succession
    ) -> None:
        self._memory = memory
        self._place = place
        self._upstream = upstream
        self._succession = succession
        self._stamp = Stamp(NO_VERSION)
        self._own = (np.zeros(size, np.float32), np.zeros(size, np.float32))
        self._vector: Vector = self._own[0]
        self._is_closed = False

    def poll(self) -> bool:
        if self._is_closed:
            return False
        memory = self._memory
        memory.fence()
        memory.beats[self._place] += 1
        was_leading = memory.leader == self._place
        if not was_leading and self._succession.leader(memory.leader, memory.beats.tolist()) == self._place:
            memory.leader = self._place
            memory.fence()
        return self._pull() if was_leading else self._read()

    @property
    def version(self) -> int:
        return self._stamp.version

    @property
    def steps(self) -> int:
        return self._stamp.steps

    @property
    def vector(self) -> Vector:
        return self._vector

    @property
    def is_leading(self) -> bool:
        return self._memory.leader == self._place

    def close(self) -> None:
        """Leaves the node's members; the next one leads."""
        self._is_closed = True
        self._memory.beats[self._place] = GONE
        self._memory.fence()
        self._upstream.close()

    def _pull(self) -> bool:
        """Only a member that led at its last poll already gets here: of two that took over at once, one has seen it."""
        if not self._upstream.poll() or self._upstream.version <= self.version:
            return False
        stamp = Stamp(self._upstream.version, self._upstream.steps)
        self._memory.write(stamp, self._upstream.vector)
        self._stamp, self._vector = stamp, self._upstream.vector
        return True

    def _read(self) -> bool:
        # A boolean as index. A vector of the time as leader is neither of the two, and then either will do.
        spare = self._own[self._vector is self._own[0]]
        stamp = self._memory.read(self.version, spare)
        if stamp is None:
            return False
        self._stamp, self._vector = stamp, spare
        return True


def _head_items(members: int) -> int:
    return -(-(_BEATS + members) // _ALIGNMENT_ITEMS) * _ALIGNMENT_ITEMS


def _vector_items(size: int) -> int:
    return -(-size // _ALIGNMENT_ITEMS) * _ALIGNMENT_ITEMS
