"""The batches of a trainer: one is gathered while others are trained, once or several times.

gathering --(full)--> begun, `uses` updates left --(update)--> one less --> ... --> none left: room for the next

Without a queue, a batch is used up before the next is begun. With one, an update learns from the batch with the most
uses left, the newest of those: from a new one as soon as it is full, else from one that is kept. A batch that no longer
fits loses its uses. All trainers of a policy choose alike, since they agree on whether a new batch is begun.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srlhpc.comm.channel import Message
from srlhpc.data.blocks import BlockHeader
from srlhpc.roles.training.staging import Staging

log = logging.getLogger(__name__)


@dataclass
class _Kept:
    """A batch that was begun and has uses left."""

    staging: Staging
    uses_left: int


class Batches:
    """What the next update learns from. All trainers of a policy begin and use up their batches in the same updates.

    Args:
        staging: room for the batches of the queue (one without), and for one more.
        uses: updates made of each batch.
        max_policy_lag: in updates; None for no limit.
        queue: batches with uses left that are kept; None: a batch is used up before the next is begun.
    """

    def __init__(
        self, staging: Sequence[Staging], *, uses: int, max_policy_lag: int | None, queue: int | None = None
    ) -> None:
        assert len(staging) == 1 + (queue or 1)
        self._stagings = list(staging)
        self.gathered, self.trained = self._stagings[:2]
        self._uses, self._max_policy_lag = uses, max_policy_lag
        self.has_queue = queue is not None
        self._room = queue or 1
        self._kept: list[_Kept] = []  # the oldest first
        self._takes_new = False
        self.begun = 0
        """Batches whose training has begun since grants are counted."""
        self.dropped_uses = 0

    @property
    def uses_left(self) -> int:
        """Updates that are still made of the batches that were begun, the one under way included."""
        return sum(kept.uses_left for kept in self._kept)

    @property
    def is_ready(self) -> bool:
        """Whether an update can be made."""
        return bool(self._kept) or self.gathered.is_full

    def choose(self, *, new: bool) -> None:
        """Decides whether the next update begins the gathered batch; only with a queue."""
        self._takes_new = new

    @property
    def next(self) -> Staging:
        """What the next update learns from, once it is full."""
        return self.gathered if self.begins_new else self._best.staging

    @property
    def begins_new(self) -> bool:
        """Whether the next update is the first of its batch."""
        return self._takes_new or not self._kept

    @property
    def _best(self) -> _Kept:
        # Of batches with equal uses left, max takes the first that it sees: the newest.
        return max(reversed(self._kept), key=lambda kept: kept.uses_left)

    def is_late(self, block: Message, version: int, *, updating: bool) -> bool:
        """Whether a block is too old for its first use, at the earliest that is possible.

        `updating`: an update is under way, which a block of a queue's new batch waits for.
        """
        waits = int(updating) if self.has_queue else self.uses_left
        return self._is_too_old(int(block.header[BlockHeader.OLDEST_VERSION]), version + waits)

    def is_stale(self, version: int) -> bool:
        """Whether the batch of the next update is too old for it, which only happens where others came before."""
        if not (self._kept or self._takes_new):
            return False
        return self._is_too_old(self.next.oldest_version, version)

    def _is_too_old(self, oldest: int, at: int) -> bool:
        return self._max_policy_lag is not None and at - oldest > self._max_policy_lag

    def begin(self) -> bool:
        """Makes `trained` what the next update learns from; true if that is its first use."""
        self.trained = self.next
        if not self.begins_new:
            return False
        self._kept.append(_Kept(self.trained, self._uses))
        if len(self._kept) > self._room:
            # Of batches with equal uses left, min takes the oldest.
            self._drop(min(self._kept, key=lambda kept: kept.uses_left))
        taken = [kept.staging for kept in self._kept]
        self.gathered = next(staging for staging in self._stagings if staging not in taken)
        self.gathered.clear()
        self.begun += 1
        return True

    def end_use(self) -> None:
        """An update was made of `trained`."""
        for kept in self._kept:
            kept.uses_left -= kept.staging is self.trained
        self._kept = [kept for kept in self._kept if kept.uses_left]

    def drop_stale(self) -> int:
        """Gives up the batch of the next update; returns the fragments that were never used."""
        if not self.begins_new:
            self._drop(self._best)
            return 0
        self.gathered.clear()
        return self.gathered.columns

    def _drop(self, kept: _Kept) -> None:
        self.dropped_uses += kept.uses_left
        self._kept.remove(kept)

    def save_state(self) -> dict[str, Any]:
        """The batches that have uses left, and what is gathered; called between updates."""
        kept = {str(i): {"left": one.uses_left, "batch": one.staging.save_state()} for i, one in enumerate(self._kept)}
        gathered = {"gathered": self.gathered.save_state()} if self.gathered.filled else {}
        return {"begun": self.begun, "kept": kept, **gathered}

    def load_state(self, state: Mapping[str, Any]) -> None:
        # Checkpoints from before there were several kept batches hold one.
        saved = state.get("kept", {"0": state} if "left" in state else {})
        for place in sorted(saved, key=int)[-self._room :]:
            staging = self._stagings[1 + len(self._kept)]
            # A kept batch was used once at least, and the job may allow fewer uses than it did.
            if staging.load_state(saved[place]["batch"]):
                self._kept.append(_Kept(staging, min(int(saved[place]["left"]), self._uses - 1)))
            else:
                log.warning("the checkpoint's batch has other shapes; it is not used again")
        self._kept = [kept for kept in self._kept if kept.uses_left > 0]
        self.begun = int(state.get("begun", 0))
        if "gathered" in state:
            is_whole = self.gathered.load_state(state["gathered"])
            assert is_whole, "what is under way is loaded only into the same arrangement"
