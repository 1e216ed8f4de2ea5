"""The contract of a role, and the one loop that polls roles and backs off."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srlhpc.comm.protocol import Command, Report


class Role(ABC):
    """What a rank does. `poll` never blocks; decisions are methods without channels in them."""

    label: str

    @abstractmethod
    def poll(self) -> bool:
        """Does what can be done now, at most about one step, request batch or minibatch; true if it did anything."""

    @abstractmethod
    def counters(self) -> dict[str, float]:
        """Totals of this attempt and times by what they were spent on, for reports."""

    @property
    @abstractmethod
    def is_done(self) -> bool:
        """Whether the role has ended after `obey` was told to stop."""

    @property
    def has_news(self) -> bool:
        """Whether the coordinator should hear at once, or the role waits for its answer."""
        return False

    @property
    def moves(self) -> int:
        """A count that grows with everything the role does, in whatever unit; by it a standstill is found."""
        return 0

    def waits_for(self) -> str:
        """What the role waits for now, in words; empty if for nothing."""
        return ""

    def obey(self, command: Command) -> None:
        """Notes what the coordinator wants."""

    def forget(self, addresses: Collection[int]) -> None:
        """The roles at these addresses are dead."""

    def fill(self, report: Report) -> None:
        """Adds events since the last report."""

    def save_state(self) -> Mapping[str, Any]:
        """What an exact resume of a serial run needs beside the trainers' parts and the links; called between polls."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `save_state` gave; called before the first poll."""

    def close(self) -> None:
        """Frees what the role holds, its posted receives included."""

    def close_environments(self) -> None:
        """Closes what the role's environments hold, and nothing else: a failed rank does so before it leaves."""


@dataclass(frozen=True)
class Backoff:
    """How a rank waits when nothing moves: some polls that yield the core, then growing sleeps.

    The constants were measured (mean latency against idle CPU): more than about 50 spins burn the sender's time on a
    shared core and gain nothing.
    """

    polls: int
    first_seconds: float
    growth: float
    usual_seconds: float
    """Length up to which sleeps grow quickly."""
    slow_growth: float = 1.05
    """Growth of longer sleeps: what has waited for a second is not late by another twentieth."""
    longest_seconds: float = 5e-3
    starting_seconds: float = 50e-3
    """Longest sleep until a rank has done something in `START_POLLS` polls: hundreds of ranks of a node that wait for
    one still starting must leave the cores to it."""

    def next(self, pause: float, *, starting: bool) -> float:
        """The sleep after one of `pause` seconds."""
        growth = self.growth if pause < self.usual_seconds else self.slow_growth
        return min(pause * growth, self.starting_seconds if starting else self.longest_seconds)


START_POLLS = 50

INFERENCE = Backoff(20, 50e-6, 1.2, 500e-6)
STREAM = Backoff(50, 50e-6, 1.5, 1e-3)
IDLE = Backoff(20, 50e-6, 1.2, 2e-3)


def run_roles(
    roles: Sequence[Role],
    backoff: Backoff,
    *,
    keep_going: Callable[[], bool],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Polls all roles in turn until `keep_going` says no; yields, then sleeps, while none has anything to do."""
    idle, worked = 0, 0
    pause = backoff.first_seconds
    while keep_going():
        busy = False
        for role in roles:
            busy |= role.poll()
        if busy:
            idle, pause = 0, backoff.first_seconds
            worked += 1
        elif idle < backoff.polls:
            idle += 1
            os.sched_yield()
        else:
            sleep(pause)
            pause = backoff.next(pause, starting=worked < START_POLLS)
