"""What the status says of ranks, and of roles summed over them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from srlhpc.roles.coordinating.liveness import RankRecord


def totals_by_role(records: Iterable[RankRecord]) -> dict[str, dict[str, float]]:
    """Counters of all ranks, summed by role."""
    totals: dict[str, dict[str, float]] = {}
    for record in records:
        for label, counters in (record.counters or {}).items():
            into = totals.setdefault(record.role_names[label], {})
            for name, value in counters.items():
                into[name] = into.get(name, 0) + value
    return totals


def rank_entry(record: RankRecord, now: float) -> dict[str, Any]:
    """One rank's line; `now` is on the clock of `heard_at`."""
    return {
        "rank": record.rank,
        "label": record.label,
        "host": record.host,
        "pid": record.pid,
        "alive": record.reported and not record.dead,
        "silent_seconds": round(now - record.heard_at, 1),
        "silence_limit_seconds": record.silence_limit_seconds,
        "counters": record.counters or {},
    }
