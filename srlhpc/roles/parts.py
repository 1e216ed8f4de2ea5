"""A trainer's part of a checkpoint on its way to the coordinator, in chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.channel import Inbox, Outbox
from srlhpc.comm.protocol import CHUNK_BYTES, ChunkHeader
from srlhpc.data.layout import HEADER_BYTES
from srlhpc.data.tree import decode_tree, encode_tree


class PartSender:
    """Copies a tree at once and sends it chunk by chunk while the owner goes on."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._data: NDArray[np.uint8] | None = None
        self._memory: NDArray[np.uint8] | None = None
        self._sent = 0
        self._number = 0

    @property
    def is_idle(self) -> bool:
        return self._data is None and self._outbox.is_drained

    def begin(self, number: int, tree: Mapping[str, Any]) -> None:
        """Starts checkpoint `number`; the tree may change from now on."""
        assert self._data is None, "one part at a time"
        self._data, self._sent, self._number = encode_tree(tree, self._memory), 0, number
        # Kept for the next part, which has nearly the same size.
        self._memory = self._data.base

    def poll(self) -> bool:
        """Sends what there is room for."""
        busy = self._outbox.poll()
        while self._data is not None and (message := self._outbox.acquire()) is not None:
            chunk = self._data[self._sent : self._sent + CHUNK_BYTES]
            message.fields["bytes"][: len(chunk)] = chunk
            self._sent += len(chunk)
            message.header[ChunkHeader.CHECKPOINT] = self._number
            message.header[ChunkHeader.LENGTH] = len(chunk)
            message.header[ChunkHeader.REMAINING] = len(self._data) - self._sent
            self._outbox.send(message, HEADER_BYTES + len(chunk))
            if self._sent == len(self._data):
                self._data = None
            busy = True
        return busy


class PartReceiver:
    """Puts the chunks of one policy together."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._chunks: list[NDArray[np.uint8]] = []

    def poll(self) -> tuple[int, dict[str, Any]] | None:
        """The number and tree of a part that is complete now."""
        self._inbox.poll()
        while (message := self._inbox.take()) is not None:
            self._chunks.append(message.fields["bytes"][: message.header[ChunkHeader.LENGTH]].copy())
            number, remaining = (int(message.header[i]) for i in (ChunkHeader.CHECKPOINT, ChunkHeader.REMAINING))
            self._inbox.release(message)
            if remaining == 0:
                data = np.concatenate(self._chunks)
                self._chunks = []
                return number, decode_tree(data)
        return None

    def close(self) -> None:
        self._inbox.close()
