"""What the coordinator's log says about a run: few lines, each worth reading."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from srlhpc.errors import counted, rounded
from srlhpc.roles.coordinating.checkpointing import Checkpointing
from srlhpc.roles.coordinating.liveness import Liveness, RankRecord
from srlhpc.roles.coordinating.progress import Progress

log = logging.getLogger(__name__)

_SECONDS_BETWEEN = (10.0, 60.0)
"""Seconds between two lines on progress: at the beginning, and later."""
_HOSTS_SHOWN = 16


class Journal:
    """Logs what has changed since the last look.

    Args:
        liveness: who is up.
        progress: how far training is.
        checkpointing: what was written.
        now: seconds on the caller's clock.
    """

    def __init__(self, liveness: Liveness, progress: Progress, checkpointing: Checkpointing, now: float) -> None:
        self._liveness, self._progress, self._checkpointing = liveness, progress, checkpointing
        self._began, self._next = now, now
        self._every = _SECONDS_BETWEEN[0]
        self._first_updates = progress.updates
        self._is_up = self._has_trained = False
        self._best: float | None = None
        self._told_checkpoint = checkpointing.last
        self.asked_at = now
        """When a checkpoint was last asked for."""
        log.info("attempt begins at %s; waiting for %s", self._where(), counted(liveness.planned, "rank"))

    def look(self, now: float) -> None:
        """Writes the lines that are due; called about once a second."""
        self._look_at_ranks(now)
        self._look_at_checkpoints(now)
        progress = self._progress
        if progress.updates <= self._first_updates:
            return
        if not self._has_trained:
            self._has_trained, self._next = True, now + self._every
            log.info("first batch trained after %.1f s", now - self._began)
        elif now >= self._next:
            self._every = min(_SECONDS_BETWEEN[1], self._every + _SECONDS_BETWEEN[0])
            self._next = now + self._every
            log.info("%s, %.0f steps/s%s", self._where(), progress.steps_per_second(now), self._return_and_lag())

    def end(self, state: str, reason: str, message: str, now: float) -> None:
        """Writes how it ended."""
        self._look_at_checkpoints(now)
        why = f": {message}" if message else ""
        log.info("attempt ends (%s)%s; %s, %.0f s", reason or state, why, self._where(), now - self._began)

    def _look_at_ranks(self, now: float) -> None:
        records = self._liveness.records
        if not self._is_up and all(record.reported or record.dead for record in records):
            self._is_up = True
            text = whereabouts([record for record in records if not record.dead])
            log.info("all ranks are up after %.1f s: %s", now - self._began, text)

    def _look_at_checkpoints(self, now: float) -> None:
        last = self._checkpointing.last
        if last is not None and last != self._told_checkpoint:
            self._told_checkpoint = last
            seconds = now - self.asked_at
            log.info("checkpoint %s written within %.1f s; now at %s", last.name, seconds, self._where())

    def _where(self) -> str:
        return f"{counted(self._progress.updates, 'update')}, {counted(self._progress.steps, 'step')}"

    def _return_and_lag(self) -> str:
        summary = self._progress.updates_of.values()
        lags = [update["lag"][1] for update in summary if update["lag"][1] is not None]
        lag = f", policy lag {rounded(lags[0])}" if lags else ""
        mean = self._progress.return_mean
        if mean is None:
            return lag
        is_best = self._best is None or mean > self._best
        best = " (best so far)" if is_best else f" (best {self._best:.4g})"
        self._best = mean if self._best is None else max(self._best, mean)
        return f", mean return {mean:.4g}{best}{lag}"


def whereabouts(records: Sequence[RankRecord]) -> str:
    """`cpu1: 4 actors; gpu1: 1 trainer, 1 policy server`."""
    hosts: dict[str, Counter[str]] = {}
    for record in records:
        hosts.setdefault(record.host or "?", Counter())[record.role] += 1
    shown = [
        f"{host}: {', '.join(counted(count, role.replace('_', ' ')) for role, count in roles.items())}"
        for host, roles in list(hosts.items())[:_HOSTS_SHOWN]
    ]
    more = len(hosts) - len(shown)
    return "; ".join(shown) + (f"; and {counted(more, 'more host')}" if more else "")
