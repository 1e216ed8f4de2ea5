"""What roles spend their time on, over the last seconds and since the first batch, and what holds up the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from srlhpc.roles.coordinating.bottleneck import Inference, bottleneck
from srlhpc.roles.time_use import shares

_WINDOW_SECONDS = 30.0
Totals = Mapping[str, Mapping[str, float]]
"""Role to its counters, summed over its ranks."""


class LiveTiming:
    """Compares totals of now with those of before.

    Args:
        inference: who acts for the actors; None in a serial run, whose roles take turns, so that none holds up another.
    """

    def __init__(self, inference: Inference | None) -> None:
        self._inference = inference
        self._first: Totals | None = None
        self._recent: deque[tuple[float, Totals]] = deque()

    def look(self, totals: Totals, now: float) -> None:
        """Takes in the totals; called about once a second from the first batch until the run is told to stop."""
        if self._first is None:
            self._first = totals
        self._recent.append((now, totals))
        # Two points stay, since a share is the difference of two.
        while len(self._recent) > 2 and now - self._recent[0][0] > _WINDOW_SECONDS:
            self._recent.popleft()

    def summary(self, *, whole: bool = False) -> dict[str, Any]:
        """`timing`, role to shares by part, and `bottleneck`; of the last seconds, or of the whole attempt."""
        if self._first is None:
            return {"timing": {}, "bottleneck": None}
        since, until = (self._first if whole else self._recent[0][1]), self._recent[-1][1]
        timing = {
            role: {part: round(share, 4) for part, share in found.items()}
            for role, counters in until.items()
            if (found := shares(since.get(role, {}), counters))
        }
        line = bottleneck(timing, self._inference) if self._inference else None
        return {"timing": timing, "bottleneck": line}
