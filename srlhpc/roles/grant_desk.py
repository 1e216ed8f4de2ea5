"""Where groups ask for leave to start their next fragment: who waits, who has it, and what of it was lost.

Free of torch. When leave is given is the business of whoever has the desk.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from srlhpc.comm.acquisition import Holding
from srlhpc.comm.channel import Inbox, Message, Outbox
from srlhpc.comm.protocol import GrantHeader


class GrantDesk:
    """Requests in order of asking, and counts of what was granted.

    Args:
        requests: one slot per group, in the order of `grants`.
        grants: the outbox of each group.
        worth: what one block counts, in whatever is counted.
    """

    def __init__(self, requests: Inbox, grants: Mapping[int, Outbox], *, worth: int) -> None:
        self._requests, self._grants = requests, grants
        self._worth = worth
        self._parked: list[Message] = []
        self._dead: set[int] = set()
        self._open: dict[int, int] = {}
        self.started = 0
        """Every grant ever given."""
        self.lost = 0
        """What was started and will not come, or not be used."""

    def listen(self) -> bool:
        """Takes in who asks."""
        self._requests.poll()
        busy = False
        while (message := self._requests.take()) is not None:
            self._parked.append(message)
            busy = True
        return busy

    @property
    def asking(self) -> int:
        """Groups that wait for a grant."""
        return len(self._parked)

    def grant_first(self, version: int) -> bool:
        """Grants the one who has waited longest; false if it is dead.

        Args:
            version: which the fragment needs.
        """
        return self._grant_parked(0, version)

    def grant_fitting(self, version: int, amount: int) -> bool:
        """Grants the one who has waited longest of those who ask for no more than so much; false if nobody does.

        Who asks for more gets it all the same where nothing is under way, which could make room.
        """
        fits = (place for place, message in enumerate(self._parked) if self._worth_of(message) <= amount)
        place = next(fits, None if amount <= 0 or any(self._open.values()) else 0)
        if place is None:
            return False
        self._grant_parked(place, version)
        return True

    def _grant_parked(self, place: int, version: int) -> bool:
        message = self._parked.pop(place)
        granted = self._grant(message, version)
        self._requests.release(message)
        return granted

    def grant_hurried(self, version: int) -> bool:
        """Grants those who must not wait (comm/acquisition.py); true if there are any."""
        hurried = [message for message in self._parked if message.header[GrantHeader.HOLDING] == Holding.LATER]
        if hurried:
            self._parked = [m for m in self._parked if m.header[GrantHeader.HOLDING] != Holding.LATER]
        for message in hurried:
            self._grant(message, version)
            self._requests.release(message)
        return bool(hurried)

    def grant_all(self, version: int) -> None:
        """Grants all who ask: nothing moves without."""
        parked, self._parked = self._parked, []
        for message in parked:
            self._grant(message, version)
            self._requests.release(message)

    def _grant(self, request: Message, version: int) -> bool:
        if request.sender in self._dead:
            return False
        outbox = self._grants[request.slot]
        grant = outbox.acquire()
        assert grant is not None, "a group asks again only after it has its grant"
        grant.header[GrantHeader.GROUP] = request.header[GrantHeader.GROUP]
        grant.header[GrantHeader.NEEDS_VERSION] = version
        outbox.send(grant)
        worth = self._worth_of(request)
        self.started += worth
        self._open[request.sender] = self._open.get(request.sender, 0) + worth
        return True

    def _worth_of(self, request: Message) -> int:
        return self._worth * int(request.header[GrantHeader.BLOCKS])

    def received(self, sender: int) -> None:
        """A block of that actor is here."""
        if sender in self._dead:
            # It counted as lost when its actor died, but had landed before: it can still be used.
            self.lost -= self._worth
        else:
            self._open[sender] = self._open.get(sender, 0) - self._worth

    def lose(self, amount: int) -> None:
        """Counts what was started and will not be used."""
        self.lost += amount

    def forget(self, addresses: Collection[int]) -> None:
        """Actors at these addresses are dead: what they started and did not send is lost."""
        for address in set(addresses) - self._dead:
            self._dead.add(address)
            self._requests.forget(address)
            self.lost += self._open.pop(address, 0)

    def save_state(self) -> dict[str, Any]:
        """The counts; who asks is part of the links' state."""
        return {
            "started": self.started,
            "lost": self.lost,
            "open": {str(address): amount for address, amount in self._open.items()},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.started, self.lost = int(state["started"]), int(state["lost"])
        self._open = {int(address): int(amount) for address, amount in state["open"].items()}

    def close(self) -> None:
        self._requests.close()
