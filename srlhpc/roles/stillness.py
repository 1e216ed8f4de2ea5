"""A run that stands still: every rank reports, nobody works, nothing moves.

Each rank reports how long nothing of its work has moved (`Stillness`), and what its roles wait for. A long update, step
or round is no standstill: a rank that is inside one does not report, and one that was inside has moved. The coordinator
puts the ranks together (`Standstill`). Groups that wait only for their own trainers never stand still
(`comm/acquisition.py`); but where policies have several trainers each, fragments that were lost or dropped at one of
them can leave it short of what the others wait for. Then all trainers give up some of their limits (`relief`), long
before the run is given up.
"""

from __future__ import annotations

import faulthandler
import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from srlhpc.errors import KnownError, counted
from srlhpc.roles.coordinating.liveness import RankRecord
from srlhpc.roles.role import Role

log = logging.getLogger(__name__)

STANDSTILL_SECONDS = 40.0
"""Seconds without a move on any rank that make a standstill."""
RELIEF_SECONDS = 5.0
"""Seconds without a move after which trainers that may wait for each other's groups give up limits, each time."""
STACKS_SECONDS = 5.0
"""Time for all ranks to write down where they are, before the step ends."""
FRESH_SECONDS = 20.0
"""A rank that was heard of within that time is not inside a piece of work."""
TOLD_SECONDS = 2.0
"""Seconds without a move after which a rank reports what it waits for."""
_LONGEST_GAP_SECONDS = 1.0
"""Most seconds that count between two looks: while a rank is stopped or suspended, nothing can move."""
_SHOWN = 8


class StandstillError(KnownError, RuntimeError):
    """Roles wait for each other."""

    kind = "standstill"


class Stillness:
    """How long nothing has moved, in time that the rank has polled.

    Args:
        roles: of the rank.
        clock: monotonic seconds.
        interval: usual seconds between two looks.
    """

    def __init__(self, roles: Sequence[Role], clock: Callable[[], float], interval: float = 0.0) -> None:
        self._roles, self._clock = roles, clock
        self._longest = max(_LONGEST_GAP_SECONDS, 2 * interval)
        self._looked_at = clock()
        self._moves = -1
        self._seconds = 0.0

    def look(self) -> float:
        """Seconds without a move up to now."""
        now, moves = self._clock(), sum(role.moves for role in self._roles)
        gap = min(now - self._looked_at, self._longest)
        self._looked_at = now
        self._seconds = 0.0 if moves != self._moves else self._seconds + gap
        self._moves = moves
        return self._seconds

    def waits(self) -> dict[str, str]:
        """Label of a role to what it waits for."""
        return {role.label: text for role in self._roles if (text := role.waits_for())}


class Standstill:
    """Watches the records of all ranks.

    Args:
        records: kept up to date by the coordinator.
        may_relieve: whether several policies have several trainers each.
    """

    def __init__(self, records: Sequence[RankRecord], *, may_relieve: bool = False) -> None:
        self._records, self._may_relieve = records, may_relieve
        self._since: float | None = None
        self._relieved_at = -1e9
        self.relief = 0
        """How often trainers were asked to give up limits."""

    @property
    def wants_stacks(self) -> bool:
        """Whether all ranks shall write down where they are."""
        return self._since is not None

    def look(self, now: float, *, is_excused: bool) -> str | None:
        """The message if the step must end, else None.

        Args:
            now: monotonic seconds.
            is_excused: something else is waited for: a file that is written, the end.
        """
        self._relieve(now, is_excused)
        if is_excused or not stands_still(self._records, now):
            self._since = None
            return None
        if self._since is None:
            self._since = now
            log.error("%s", self.message)
        return self.message if now - self._since >= STACKS_SECONDS else None

    def _relieve(self, now: float, is_excused: bool) -> None:
        is_due = self._may_relieve and now - self._relieved_at >= RELIEF_SECONDS and not is_excused
        if is_due and stands_still(self._records, now, RELIEF_SECONDS):
            self._relieved_at = now
            self.relief += 1
            log.warning("%s; trainers let groups start beyond the limits of the policy lag", self.message)

    @property
    def message(self) -> str:
        seconds = min(record.idle_seconds for record in self._records if not record.dead)
        waits = ((label, text) for record in self._records if not record.dead for label, text in record.waits.items())
        return f"nothing has moved for {seconds:.0f} s although all ranks report: {who_waits(waits)}"


def write_stacks(path: Path | None = None) -> None:
    """Writes the stacks of all threads of this process to a file, or to its standard error, which is a rank's log."""
    if path is None:
        faulthandler.dump_traceback(sys.__stderr__ or 2, all_threads=True)
        return
    with suppress(OSError), path.open("a") as file:
        faulthandler.dump_traceback(file, all_threads=True)


def stands_still(records: Iterable[RankRecord], now: float, seconds: float = STANDSTILL_SECONDS) -> bool:
    """Whether nothing has moved for so long on any living rank, all of which report."""
    living = [record for record in records if not record.dead]
    return bool(living) and all(
        record.reported and now - record.heard_at <= FRESH_SECONDS and record.idle_seconds >= seconds
        for record in living
    )


def who_waits(waits: Iterable[tuple[str, str]]) -> str:
    """`actor-0: group 3 waits for a grant of a, holds b; trainer-a-0: ...`; the same words only once."""
    by_text: dict[str, list[str]] = {}
    for label, text in waits:
        by_text.setdefault(text, []).append(label)
    told = [f"{_some(labels)}: {text}" for text, labels in by_text.items()]
    more = len(told) - _SHOWN
    return "; ".join(told[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _some(labels: Sequence[str]) -> str:
    return ", ".join(labels[:3]) + (f" and {counted(len(labels) - 3, 'other')}" if len(labels) > 3 else "")
