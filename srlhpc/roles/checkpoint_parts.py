"""A trainer's part of a checkpoint on its way to the coordinator, in chunks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.channel import Inbox, Outbox
from srlhpc.comm.protocol import CHUNK_BYTES, ChunkHeader
from srlhpc.data.layout import HEADER_BYTES
from srlhpc.data.tree import decode_tree, encode_tree

_ROOM_BYTES = 1 << 16
"""Room for numbers that get more digits."""


def slots_of(tree: Mapping[str, Any]) -> int:
    """Slots of an outbox that holds a whole part like this one."""
    return -(-(sum(piece.size for piece in encode_tree(tree)) + _ROOM_BYTES) // CHUNK_BYTES)


class PartSender:
    """Copies a tree into the slots of its outbox, from where it leaves while the owner goes on."""

    def __init__(self, outbox: Outbox) -> None:
        """`outbox` has room for a whole part as it is at the start (`slots_of`); one that has grown waits for slots."""
        self._outbox = outbox
        self._number = 0
        self._pieces: deque[NDArray[np.uint8]] = deque()
        self._remaining = 0
        self._has_landed: Callable[[], bool] | None = None

    @property
    def is_idle(self) -> bool:
        return not self._remaining and self._outbox.is_drained

    def begin(self, number: int, tree: Mapping[str, Any], has_landed: Callable[[], bool] | None = None) -> None:
        """Sends checkpoint `number`.

        Args:
            number: of the checkpoint.
            tree: copied at once, and may change from now on.
            has_landed: instead, the tree is whole when this says so, and then copied chunk by chunk; it must not change
                until the sender `is_idle`.
        """
        assert not self._remaining, "one part at a time"
        self._outbox.poll()
        self._number, self._pieces = number, deque(encode_tree(tree))
        self._remaining = sum(piece.size for piece in self._pieces)
        self._has_landed = has_landed
        if has_landed is None:
            while self._send():
                pass
            if self._remaining:
                self._pieces = deque([np.concatenate(self._pieces)])

    def poll(self) -> bool:
        """Lets what was sent leave, and copies the next chunk."""
        moved = self._outbox.poll()
        if self._remaining and (self._has_landed is None or self._has_landed()):
            moved |= self._send()
        return moved

    def _send(self) -> bool:
        """Copies one chunk; false if there is none left, or no slot."""
        if not self._remaining or (message := self._outbox.acquire()) is None:
            return False
        length = min(self._remaining, CHUNK_BYTES)
        _fill(message.fields["bytes"][:length], self._pieces)
        self._remaining -= length
        message.header[ChunkHeader.CHECKPOINT] = self._number
        message.header[ChunkHeader.LENGTH] = length
        message.header[ChunkHeader.REMAINING] = self._remaining
        self._outbox.send(message, HEADER_BYTES + length)
        return True


def _fill(target: NDArray[np.uint8], pieces: deque[NDArray[np.uint8]]) -> None:
    """Moves bytes from the front of the pieces."""
    start = 0
    while start < target.size:
        piece = pieces.popleft()
        size = min(piece.size, target.size - start)
        target[start : start + size] = piece[:size]
        if size < piece.size:
            pieces.appendleft(piece[size:])
        start += size


class PartReceiver:
    """Puts the chunks of one policy together, in memory of its own for each part."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._part: NDArray[np.uint8] | None = None

    @property
    def is_receiving(self) -> bool:
        """Whether some chunks of a part are here, and others are to come."""
        return self._part is not None

    def poll(self) -> tuple[int, dict[str, Any]] | None:
        """The number and tree of a part that is complete now."""
        self._inbox.poll()
        while (message := self._inbox.take()) is not None:
            number, length, remaining = (
                int(message.header[i]) for i in (ChunkHeader.CHECKPOINT, ChunkHeader.LENGTH, ChunkHeader.REMAINING)
            )
            if self._part is None:
                self._part = np.empty(length + remaining, np.uint8)
            end = self._part.size - remaining
            self._part[end - length : end] = message.fields["bytes"][:length]
            self._inbox.release(message)
            if remaining == 0:
                whole, self._part = self._part, None
                return number, decode_tree(whole)
        return None

    def close(self) -> None:
        self._inbox.close()
