"""What an inbox knows about its senders: who may still send, and what waits to be taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from srlhpc.comm.channel import Flags, Header, Message

_FLAGS, _LAST = int(Header.FLAGS), int(Flags.LAST)


class Arrivals:
    """The bookkeeping that every inbox shares; it moves no bytes.

    Links are known by their place in the inbox's list; several may have the same source.
    """

    def __init__(self, sources: Sequence[int]) -> None:
        self._sources = list(sources)
        self._open = set(range(len(self._sources)))
        self._ready: deque[Message] = deque()

    def is_open(self, place: int) -> bool:
        """Whether the link may still bring messages."""
        return place in self._open

    def deliver(self, place: int, message: Message) -> bool:
        """Takes in what landed; false if its slot may receive again at once (LAST, or a forgotten sender)."""
        if place not in self._open:
            return False
        if message.header.item(_FLAGS) & _LAST:
            self._open.discard(place)
            return False
        self._ready.append(message)
        return True

    def take(self) -> Message | None:
        """The oldest message not yet taken."""
        return self._ready.popleft() if self._ready else None

    def forget(self, sender: int) -> list[int]:
        """Closes the open links of a dead sender and returns their places; what has landed can still be taken."""
        places = [place for place in sorted(self._open) if self._sources[place] == sender]
        self._open.difference_update(places)
        return places

    @property
    def is_finished(self) -> bool:
        return not self._open and not self._ready
