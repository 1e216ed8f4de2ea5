"""Limited policy lag: the trainer says which groups may start a fragment, so that nothing is trained too late."""

from __future__ import annotations

from collections.abc import Mapping

from srlhpc.comm.channel import Inbox, Outbox
from srlhpc.rl.policy_lag import rollout_slots
from srlhpc.roles.grant_desk import GrantDesk


class LagLimiter(GrantDesk):
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
        super().__init__(requests, grants, worth=fragments)
        self._batch, self._max_policy_lag, self._uses = batch, max_policy_lag, uses

    def grant(self, version: int, begun: int, uses_left: int) -> bool:
        """Grants what may start now, in order of asking; to those that must not wait, beyond the limit.

        What is started beyond the limit leaves fewer to start later, and may be dropped as too old.

        Args:
            version: the trainer's, which the fragments need.
            begun: batches whose training has begun.
            uses_left: updates that are still made of them.
        """
        busy = self.grant_hurried(version)
        while self.asking and self.grant_fitting(version, self._slots(begun, uses_left)):
            busy = True
        return busy

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
