"""What is told of updates: one event each, until the next report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srlhpc.rl.policy_lag import PolicyLag
from srlhpc.roles.training.checkpoint_part import Counters

MOST_EVENTS = 50
"""Updates that are told in one report; of more, which a slow coordinator leaves waiting, only the newest are."""


class UpdateEvents:
    """The updates of one policy that are still to be told."""

    def __init__(self, policy: str, counters: Counters) -> None:
        self._policy, self._counters = policy, counters
        self._events: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._events)

    def add(self, lag: PolicyLag, metrics: Mapping[str, float], *, checkpoint_due: bool) -> None:
        """An update was made and counted."""
        counters = self._counters
        del self._events[: -MOST_EVENTS + 1]
        self._events.append(
            {
                "policy": self._policy,
                "updates": counters.updates,
                "steps": counters.steps,
                "agent_steps": counters.agent_steps,
                "steps_used": counters.steps_used,
                "dropped_fragments": counters.dropped_fragments,
                "lag": [lag.min, lag.mean, lag.max],
                "checkpoint_due": checkpoint_due,
                "metrics": dict(metrics),
            }
        )

    def take(self) -> list[dict[str, Any]]:
        """All that are to be told; each is told once."""
        events, self._events = self._events, []
        return events
