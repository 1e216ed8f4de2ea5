"""The pace of replay: records are trained so many times for each that comes in, and whoever is ahead waits.

    filling --(steps that came in >= start_steps)--> running: |drawn - samples_per_insert x inserted| <= tolerance

Drawn and inserted are counted in records from the begin of running on. A block counts as inserted when it is granted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Rate:
    """Counts what was drawn and what came in. Pure.

    Args:
        samples_per_insert: trained records drawn for each record that comes in.
        tolerance: trained records that either side may be ahead.
        start_steps: environment steps that come in before the first draw.
    """

    def __init__(self, *, samples_per_insert: float, tolerance: float, start_steps: float) -> None:
        self._samples_per_insert, self._tolerance = samples_per_insert, tolerance
        self.start_steps = start_steps
        self._before: int | None = None
        self.drawn = 0
        """Trained records that were drawn."""

    @property
    def is_running(self) -> bool:
        """Whether enough has come in to draw."""
        return self._before is not None

    def begin(self, steps: int, inserted: int) -> None:
        """Begins to run once enough has come in; what was granted until then counts as what filled the store.

        Args:
            steps: environment steps that have come in.
            inserted: records that were granted and are not lost.
        """
        if self._before is None and steps >= self.start_steps:
            self._before = inserted

    def may_draw(self, records: int, inserted: int) -> bool:
        """Whether so many trained records may be drawn now."""
        return self.is_running and self.drawn + records - self._due(inserted) <= self._tolerance

    def may_insert(self, records: int, inserted: int) -> bool:
        """Whether a block of so many records may be granted now, beside all that `inserted` counts."""
        return not self.is_running or self._due(inserted + records) - self.drawn <= self._tolerance

    def _due(self, inserted: int) -> float:
        """Trained records that belong to what came in."""
        assert self._before is not None
        return self._samples_per_insert * (inserted - self._before)

    def save_state(self) -> dict[str, Any]:
        return {"drawn": self.drawn, "before": self._before}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.drawn = int(state["drawn"])
        self._before = None if state["before"] is None else int(state["before"])
