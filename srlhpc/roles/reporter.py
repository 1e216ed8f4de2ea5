"""Every rank's end of the control stream: reports to the coordinator, and what it answers."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence

from srlhpc.comm.channel import Inbox, Outbox
from srlhpc.comm.protocol import Command, Report, read_text, write_text
from srlhpc.roles.role import Role
from srlhpc.roles.stillness import TOLD_SECONDS, Stillness, write_stacks

_AWAY_SECONDS = 5.0
"""Seconds between two polls: more means that the rank was inside a piece of work, or suspended."""


class CoordinatorSilentError(RuntimeError):
    """The coordinator has not answered for too long; the rank ends itself."""


class Reporter(Role):
    """Reports when it is due, when a role has news, and when all roles are done; one report is outstanding at most.

    Args:
        rank: this rank.
        roles: the roles of this rank beside the coordinator.
        reports: to the coordinator.
        commands: its answers.
        addresses: rank to the addresses of its roles, to tell roles who is dead.
        interval_seconds: between reports without news; None: only with news (serial mode, where time must not matter).
        silence_seconds: how long the coordinator may take to answer.
        clock: monotonic seconds.
        stacks: writes down where all threads are.
        notes: what users should know of the rank.
    """

    label = "reporter"

    def __init__(
        self,
        rank: int,
        roles: Sequence[Role],
        reports: Outbox,
        commands: Inbox,
        *,
        addresses: Mapping[int, Sequence[int]],
        interval_seconds: float | None,
        silence_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        stacks: Callable[[], None] = write_stacks,
        notes: Sequence[str] = (),
    ) -> None:
        self._rank, self._roles = rank, roles
        self._reports, self._commands = reports, commands
        self._addresses = addresses
        self._interval, self._silence = interval_seconds, silence_seconds
        self._clock = clock
        self._host, self._pid = socket.gethostname(), os.getpid()
        self._stillness = Stillness(roles, clock, interval_seconds or 0.0)
        self._stacks, self._wrote_stacks = stacks, False
        self._notes = tuple(dict.fromkeys(notes))
        self._polled_at = clock()
        self._sent_at = -1e9
        self._outstanding = False
        self._urgent = False
        self._speaks = False
        self.heard = Command()
        """The newest answer."""
        """Whether a role waits for the answer. The reports of every second, too, must not keep an idle rank awake."""
        self.dead: set[int] = set()
        """Ranks that the coordinator says are dead."""
        self.may_exit = False

    def poll(self) -> bool:
        now = self._clock()
        away, self._polled_at = now - self._polled_at, now
        if self._outstanding:
            if away > _AWAY_SECONDS:
                # The answer may be here and not yet moved; or all ranks were suspended, the coordinator too.
                self._sent_at += away
            return self._listen()
        self._urgent = self._speaks or self.is_done or self._has_news
        if not self._urgent and not self._is_due():
            return False
        message = self._reports.acquire()
        if message is None:
            return False
        self._reports.send(message, write_text(message, self._report()))
        self._outstanding, self._speaks = True, False
        self._sent_at = self._clock()
        return self._urgent

    def speak(self) -> None:
        """The next report is due at once, with news or without."""
        self._speaks = True

    @property
    def is_quiet(self) -> bool:
        """Whether all news is reported, and answered."""
        return not (self._outstanding or self._speaks or self._has_news)

    @property
    def _has_news(self) -> bool:
        return any(role.has_news for role in self._roles)

    def _is_due(self) -> bool:
        return self._interval is not None and self._clock() - self._sent_at >= self._interval

    def _report(self) -> Report:
        report = Report(self._rank, self._host, self._pid, notes=list(self._notes))
        self._notes = ()
        for role in self._roles:
            role.fill(report)
            report.counters[role.label] = role.counters()
        report.done = self.is_done
        report.idle_seconds = self._stillness.look()
        if report.idle_seconds >= TOLD_SECONDS:
            report.waits = self._stillness.waits()
        return report

    def _listen(self) -> bool:
        self._commands.poll()
        message = self._commands.take()
        if message is None:
            if self._clock() - self._sent_at > self._silence:
                raise CoordinatorSilentError(
                    f"the coordinator (rank 0) has not answered for {self._silence:.0f} s; it or its node is lost"
                )
            return False
        command = Command(**read_text(message))
        self._commands.release(message)
        self._outstanding, self.heard = False, command
        self._pass_on(command)
        return self._urgent

    def _pass_on(self, command: Command) -> None:
        dead = set(command.dead) - self.dead
        self.dead |= dead
        addresses = [address for rank in sorted(dead) for address in self._addresses[rank]]
        for role in self._roles:
            if addresses:
                role.forget(addresses)
            role.obey(command)
        self.may_exit = command.exit
        if command.stacks and not self._wrote_stacks:
            self._stacks()
        self._wrote_stacks = command.stacks

    def counters(self) -> dict[str, float]:
        return {}

    @property
    def is_done(self) -> bool:
        return all(role.is_done for role in self._roles)

    def close(self) -> None:
        self._commands.close()
