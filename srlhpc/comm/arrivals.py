"""What an inbox knows about its senders: who may still send, and what waits to be taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from srlhpc.comm.channel import Message


class Arrivals:
    """The bookkeeping that every inbox shares; it moves no bytes.

    Links are known by their place in the inbox's list; several may have the same source.
    """

    def __init__(self, sources: Sequence[int]) -> None:
        self._sources = list(sources)
        self._open = set(range(len(self._sources)))
        self.ready: deque[Message] = deque()
        """Not yet taken, oldest first."""

    def is_open(self, place: int) -> bool:
        """Whether the link may still bring messages."""
        return place in self._open

    def deliver(self, place: int, message: Message, *, is_last: bool) -> bool:
        """Takes in what landed; false if its slot may receive again at once (LAST, or a forgotten sender)."""
        if place not in self._open:
            return False
        if is_last:
            self.end(place)
            return False
        self.ready.append(message)
        return True

    def end(self, place: int) -> None:
        """Nothing follows on this link."""
        self._open.discard(place)

    def take(self) -> Message | None:
        """The oldest message not yet taken."""
        return self.ready.popleft() if self.ready else None

    def forget(self, sender: int) -> list[int]:
        """Closes the open links of a dead sender and returns their places; what has landed can still be taken."""
        places = [place for place in sorted(self._open) if self._sources[place] == sender]
        self._open.difference_update(places)
        return places

    @property
    def is_finished(self) -> bool:
        return not self._open and not self.ready
