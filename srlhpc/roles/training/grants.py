"""Limited policy lag: the trainer says which groups may start a fragment, so that nothing is trained too late."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from srlhpc.comm.acquisition import Holding
from srlhpc.comm.channel import Inbox, Message, Outbox
from srlhpc.comm.protocol import GrantHeader
from srlhpc.rl.policy_lag import rollout_slots


class LagLimiter:
    """Counts the fragments that were started and lost, and grants as many as the version allows.

    Args:
        requests: one slot per group, in the order of `grants`.
        grants: the outbox of each group.
        fragments: of one block.
        batch: fragments of one of this trainer's batches.
        max_policy_lag: in updates.
        uses: updates made of each batch.
    """

    def __init__(
        self,
        requests: Inbox,
        grants: Mapping[int, Outbox],
        *,
        fragments: int,
        batch: int,
        max_policy_lag: int,
        uses: int,
    ) -> None:
        self._requests, self._grants = requests, grants
        self._fragments, self._batch, self._max_policy_lag = fragments, batch, max_policy_lag
        self._uses = uses
        self._parked: list[Message] = []
        self._dead: set[int] = set()
        self._open: dict[int, int] = {}
        self.started = 0
        self.lost = 0

    def listen(self) -> bool:
        """Takes in who asks."""
        self._requests.poll()
        busy = False
        while (message := self._requests.take()) is not None:
            self._parked.append(message)
            busy = True
        return busy

    def grant(self, version: int, begun: int, uses_left: int) -> bool:
        """Grants what may start now, in order of asking; to those that must not wait, beyond the limit.

        Args:
            version: the trainer's, which the fragments need.
            begun: batches whose training has begun.
            uses_left: updates that are still made of them.
        """
        busy = self._grant_at_once(version)
        while self._parked and self._slots(begun, uses_left) >= self._fragments:
            message = self._parked.pop(0)
            busy |= self._grant(message, version)
            self._requests.release(message)
        return busy

    def _grant_at_once(self, version: int) -> bool:
        """What is started beyond the limit leaves fewer to start later, and may be dropped as too old."""
        hurried = [message for message in self._parked if message.header[GrantHeader.HOLDING] == Holding.LATER]
        if hurried:
            self._parked = [m for m in self._parked if m.header[GrantHeader.HOLDING] != Holding.LATER]
        for message in hurried:
            self._grant(message, version)
            self._requests.release(message)
        return bool(hurried)

    def grant_all(self, version: int) -> None:
        """Grants all who ask, whatever the limit: nothing moves without."""
        parked, self._parked = self._parked, []
        for message in parked:
            self._grant(message, version)
            self._requests.release(message)

    def _slots(self, begun: int, uses_left: int) -> int:
        return rollout_slots(
            begun,
            self.started,
            self.lost,
            batch=self._batch,
            max_policy_lag=self._max_policy_lag,
            uses=self._uses,
            uses_left=uses_left,
        )

    def _grant(self, request: Message, version: int) -> bool:
        if request.sender in self._dead:
            return False
        outbox = self._grants[request.slot]
        grant = outbox.acquire()
        assert grant is not None, "a group asks again only after it has its grant"
        grant.header[GrantHeader.GROUP] = request.header[GrantHeader.GROUP]
        grant.header[GrantHeader.NEEDS_VERSION] = version
        outbox.send(grant)
        self.started += self._fragments
        self._open[request.sender] = self._open.get(request.sender, 0) + self._fragments
        return True

    @property
    def asking(self) -> int:
        """Groups that wait for a grant."""
        return len(self._parked)

    def received(self, sender: int) -> None:
        """A block of that actor is here."""
        if sender in self._dead:
            # It counted as lost when its actor died, but had landed before: it can still be trained.
            self.lost -= self._fragments
        else:
            self._open[sender] = self._open.get(sender, 0) - self._fragments

    def lose(self, fragments: int) -> None:
        """Counts started fragments that will not be trained."""
        self.lost += fragments

    def forget(self, addresses: Collection[int]) -> None:
        """Actors at these addresses are dead: what they started and did not send is lost."""
        for address in set(addresses) - self._dead:
            self._dead.add(address)
            self._requests.forget(address)
            self.lost += self._open.pop(address, 0)

    def save_state(self) -> dict[str, Any]:
        """The counts; who asks is part of the links' state."""
        open_fragments = {str(address): fragments for address, fragments in self._open.items()}
        return {"started": self.started, "lost": self.lost, "open": open_fragments}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.started, self.lost = int(state["started"]), int(state["lost"])
        self._open = {int(address): int(fragments) for address, fragments in state["open"].items()}

    def close(self) -> None:
        self._requests.close()
