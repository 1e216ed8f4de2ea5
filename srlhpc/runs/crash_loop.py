"""Ranks that crash again and again while the run goes on: what its attempts tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from srlhpc.data.atomic import read_json
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.progress import duration_text

LATELY_SECONDS = 600.0


_SHOWN_FROM = 3
_READ = 20
"""How many attempts are looked at, from the last one on."""


class CrashLoop(NamedTuple):
    """Attempts that crashed shortly one after the other."""

    first: int
    last: int
    seconds: float
    """Seconds from the end of the first to that of the last, all by the foreman's clock."""
    message: str
    """Message of the last crash."""

    @property
    def text(self) -> str:
        count = self.last - self.first + 1
        return (
            f"attempts {self.first} to {self.last} crashed one after the other ({count} times in "
            f"{duration_text(self.seconds)}); the last: {self.message}"
        )


def crash_loop(paths: RunPaths) -> CrashLoop | None:
    """Three crashes or more of which each came soon after the one before, up to now; None if there are none.

    The attempt that runs now may be too young to tell; if it has been running for long, it is over.
    """
    numbers = paths.attempt_numbers()[-_READ:]
    ends = {number: read_json(paths.attempt(number).end) for number in numbers}
    if numbers and ends[numbers[-1]] is None and _runs_long(paths, numbers.pop()):
        return None
    crashed: list[tuple[int, Mapping[str, Any]]] = []
    # From the newest back: older crashes count only if they led up to it.
    for number in reversed(numbers):
        end = ends[number] or {}
        if end.get("state") != "failed" or (crashed and _gap(end, crashed[-1][1]) > LATELY_SECONDS):
            break
        crashed.append((number, end))
    if len(crashed) < _SHOWN_FROM:
        return None
    (last, newest), (first, oldest) = crashed[0], crashed[-1]
    return CrashLoop(first, last, _gap(oldest, newest), " ".join(str(newest.get("message", "")).split()))


def _runs_long(paths: RunPaths, number: int) -> bool:
    """Whether the last attempt works for longer than crashes are apart, by clocks of its own nodes."""
    begun = (read_json(paths.attempt(number).attempt) or {}).get("time")
    status = read_json(paths.status) or {}
    if begun is None or status.get("attempt") != number:
        return False
    return float(status.get("time") or 0.0) - float(begun) > LATELY_SECONDS


def _gap(before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    return float(after.get("time", 0.0)) - float(before.get("time", 0.0))
