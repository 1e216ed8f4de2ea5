"""The two batches of a trainer: one is gathered while the other is trained, once or several times.

gathering --(full)--> begun, `uses` updates left --(update)--> one less --> ... --> none left: room for the next
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from srlhpc.comm.channel import Message
from srlhpc.data.blocks import BlockHeader
from srlhpc.roles.staging import Staging

log = logging.getLogger(__name__)


class Batches:
    """What the next update learns from. All trainers of a policy begin and use up their batches in the same updates.

    Args:
        staging: room for two batches.
        uses: updates made of each batch.
        max_policy_lag: in updates; None for no limit.
    """

    def __init__(self, staging: tuple[Staging, Staging], *, uses: int, max_policy_lag: int | None) -> None:
        self.gathered, self.trained = staging
        self._uses, self._max_policy_lag = uses, max_policy_lag
        self.begun = 0
        """Batches of this attempt whose training has begun."""
        self.left = 0
        """Updates that are still made of the newest of them, the one under way included."""
        self.dropped_uses = 0

    @property
    def next(self) -> Staging:
        """What the next update learns from, once it is full."""
        return self.trained if self.left else self.gathered

    def is_late(self, block: Message, version: int) -> bool:
        """Whether a block is too old for its first use, which comes after those that are left of the batch before."""
        return self._is_too_old(int(block.header[BlockHeader.OLDEST_VERSION]), version + self.left)

    def is_worn(self, version: int) -> bool:
        """Whether a batch that has uses left is too old for the next."""
        return self.left > 0 and self._is_too_old(self.trained.oldest_version, version)

    def _is_too_old(self, oldest: int, at: int) -> bool:
        return self._max_policy_lag is not None and at - oldest > self._max_policy_lag

    def begin(self) -> bool:
        """Makes `trained` what the next update learns from; true if that is its first use."""
        if self.left:
            return False
        self.trained, self.gathered = self.gathered, self.trained
        self.gathered.clear()
        self.begun += 1
        self.left = self._uses
        return True

    def end_use(self) -> None:
        """An update was made of `trained`."""
        self.left -= 1

    def drop_uses(self) -> None:
        """The batch is not used again."""
        self.dropped_uses += self.left
        self.left = 0

    def save_state(self) -> dict[str, Any]:
        """The batch that has uses left, for an exact resume; what is being gathered is not kept."""
        return {"left": self.left, "batch": self.trained.save_state()} if self.left else {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        if "left" not in state:
            return
        if self.trained.load_state(state["batch"]):
            self.left = min(int(state["left"]), self._uses - 1)
        else:
            log.warning("the checkpoint's batch has other shapes; it is not used again")
