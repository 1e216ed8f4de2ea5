"""How a role spends its wall time: every second is in one part, measured around what the role does anyway.

| part | trainer | policy server | actor | evaluator | replay |
|---|---|---|---|---|---|
| `environment` | | | inside the environment's own step | | |
| `computing` | updates | batches of requests, new parameters | records, messages | rounds | blocks, windows |
| `moving` | data, grants, parameters, checkpoints | | | | |
| `input` | waits for data or leave to go on | waits for requests | waits for actions | waits for parameters | waits |
| `slot` | | | all groups wait for a free slot or a grant | | its rate makes actors wait |
| `others` | waits for trainers or its rank's roles | | | | its rate makes the trainer wait |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Literal

Part = Literal["environment", "computing", "moving", "input", "slot", "others"]
PARTS: tuple[Part, ...] = ("environment", "computing", "moving", "input", "slot", "others")


class TimeUse:
    """A stopwatch that is told what the time since it was last told went into.

    Between two polls nothing is known but what the role waits for; so a role says at the beginning of a poll that it
    waited, and at the end whether the poll did anything.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._last = clock()
        self._seconds: dict[Part, float] = {"computing": 0.0, "input": 0.0}

    def spent(self, part: Part) -> float:
        """All time since the last call went into `part`; returns how many seconds that were."""
        now = self._clock()
        seconds = now - self._last
        self._last = now
        self._seconds[part] = self._seconds.get(part, 0.0) + seconds
        return seconds

    def skip(self) -> None:
        """The time since the last call counts nowhere (start, end)."""
        self._last = self._clock()

    def counters(self) -> dict[str, float]:
        """`computing_seconds` and the like, and their sum, `seconds`."""
        parts = {f"{part}_seconds": seconds for part, seconds in self._seconds.items()}
        return parts | {"seconds": sum(self._seconds.values())}


def shares(before: Mapping[str, float], after: Mapping[str, float]) -> dict[Part, float]:
    """What the time between two sets of counters went into, as parts of 1; empty if no time passed."""
    seconds = {part: max(0.0, after.get(f"{part}_seconds", 0.0) - before.get(f"{part}_seconds", 0.0)) for part in PARTS}
    total = sum(seconds.values())
    return {part: value / total for part, value in seconds.items() if value} if total else {}
