"""The trainer: learns from batches, publishes parameters, hands over its part of checkpoints.

    waiting --(batch full on all trainers)--> updating --> published --(batch has uses left)--> updating
                                                             published --(no use left)--> waiting
    with a queue of batches: published --(a new batch is full, or any has uses left)--> updating
    waiting --(any trainer is told to stop)--> last part sent --> discarding until every actor said LAST --> done

Streams are served at every yield of an update, since MPI moves nothing while nobody polls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from srlhpc.algorithms.algorithm import Algorithm
from srlhpc.comm.protocol import Command, Report
from srlhpc.errors import ClusterError
from srlhpc.policies.policy import Policy
from srlhpc.roles.checkpoint_parts import PartSender
from srlhpc.roles.role import Role
from srlhpc.roles.time_use import TimeUse
from srlhpc.roles.training.batch_source import AgreeingReducer, BatchSource, NextBatch
from srlhpc.roles.training.checkpoint_part import Counters
from srlhpc.roles.training.copy_stream import PartCopy
from srlhpc.roles.training.hand_over import HandOver
from srlhpc.roles.training.hearing import Hearing
from srlhpc.roles.training.publication import Publication, Publisher
from srlhpc.roles.training.update_events import UpdateEvents

_BUSY_SECONDS = 100e-6


@dataclass(frozen=True)
class TrainerSettings:
    """What a trainer needs to know."""

    policy: str
    stop_steps: int | None
    """Trained steps at which it waits for the coordinator to stop the run; None: another policy decides."""
    stop_updates: int | None
    checkpoint_updates: int | None
    """Updates between checkpoints that this trainer asks for; None: the coordinator's clock decides."""
    is_version: Callable[[int], bool]
    """Whether there is to be a version after so many updates."""
    pauses: bool
    """Serial mode: after each batch it stands still until it is told to go on."""


class Trainer(Role):
    """One trainer of one policy. Only the first has a `publisher` and a `parts` sender.

    `counters` are also those of `batches`; `part_copy` is where a GPU's part is copied to.
    """

    def __init__(
        self,
        label: str,
        settings: TrainerSettings,
        policy: Policy,
        algorithm: Algorithm,
        reducer: AgreeingReducer,
        batches: BatchSource,
        *,
        publisher: Publisher | None,
        parts: PartSender | None,
        counters: Counters,
        part_copy: PartCopy | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.label = label
        self._settings = settings
        self._algorithm, self._reducer = algorithm, reducer
        self._batches = batches
        self._publication = Publication(policy, publisher, counters)
        self._hand_over = HandOver(
            policy, algorithm, counters, parts, part_copy, settings.checkpoint_updates, settings.is_version, clock
        )
        self._totals = counters
        self._clock = clock
        self._updating = self._frozen = False
        self.is_pausing = False
        """Serial mode: a batch was used or skipped, and the next waits for `go_on`."""
        self._on_gpu = any(parameter.is_cuda for parameter in policy.parameters())
        self._stopping = False
        self._ended = False
        self._events = UpdateEvents(settings.policy, counters)
        self._steps_trained = 0
        self._moves = 0
        self._relief = 0
        self._hearing = Hearing(clock)
        self._time = TimeUse(clock)
        self._life = self._live()

    @property
    def version(self) -> int:
        """Updates contained in the parameters."""
        return self._totals.updates

    # --- polling -------------------------------------------------------------------------------------------------

    def poll(self) -> bool:
        if self._frozen:
            return self._poll_frozen()
        updating = self._updating
        # During an update, the time between two polls went to the other roles of this rank, or other trainers are late;
        # a GPU computes on.
        self._time.spent(("computing" if self._on_gpu else "others") if updating else "input")
        busy = self._serve()
        if busy:
            self._time.spent("moving")
        if not self._ended:
            next(self._life, None)
        updating |= self._updating
        self._moves += busy or updating
        seconds = self._time.spent("computing" if updating else "input")
        # What a GPU has computed is looked at without delay: it idles until then.
        return busy or seconds > _BUSY_SECONDS or (updating and self._on_gpu)

    def _serve(self) -> bool:
        busy = self._batches.serve(updating=self._updating, starts=not self._stopping)
        busy |= self._publication.poll()
        return busy | self._hand_over.poll()

    @property
    def _at_limit(self) -> bool:
        steps, updates = self._settings.stop_steps, self._settings.stop_updates
        return (steps is not None and self._totals.steps >= steps) or (
            updates is not None and self._totals.updates >= updates
        )

    # --- serial mode ---------------------------------------------------------------------------------------------

    def freeze(self) -> None:
        """From now on, only an update that is under way goes on, and a part of a checkpoint leaves."""
        self._frozen = True

    @property
    def is_updating(self) -> bool:
        return self._updating

    def go_on(self) -> None:
        """Ends `freeze`, and goes on at once as it would have without."""
        self._frozen = False
        next(self._life, None)

    def _poll_frozen(self) -> bool:
        if not self._updating:
            self._hand_over.send_if_asked()
            return self._hand_over.poll()
        next(self._life)
        self._moves += 1
        self._time.spent("computing")
        return True

    def _pause(self) -> Generator[None]:
        if self._settings.pauses:
            self.is_pausing = True
            yield
            self.is_pausing = False

    # --- life ----------------------------------------------------------------------------------------------------

    def _live(self) -> Generator[None]:
        self._publication.begin()
        self._batches.published(self._publication.version)
        while True:
            while self._hand_over.owes_version or not (self._stopping or self._may_go_on):
                self._hand_over.send_if_asked()
                yield
            self._hand_over.send_if_asked()
            yield from self._batches.choose(self._agree)
            mine = self._batches.next_batch()
            *sums, stop = yield from self._agree(*mine, self._stopping)
            # All trainers decide by the same sums, so they stop, drop and learn in the same round.
            total = NextBatch(*sums)
            if stop:
                break
            if total.stale:
                self._batches.drop_stale()
            elif total.full == self._reducer.trainers:
                if total.valid:
                    yield from self._update(mine, total)
                else:
                    self._batches.skip_empty()
                yield from self._pause()
        yield from self._end()

    @property
    def _may_go_on(self) -> bool:
        return self._batches.is_ready and not (self._at_limit or self._hearing.is_due)

    def _agree(self, *flags: float) -> Generator[None, None, list[float]]:
        """Sums of the flags over all trainers. Others may have no batch yet, so a part that is asked for leaves now."""
        agreeing = self._reducer.agree([float(flag) for flag in flags])
        while True:
            try:
                next(agreeing)
            except StopIteration as agreed:
                sums: list[float] = agreed.value
                return sums
            self._hand_over.send_if_asked()
            yield

    def _update(self, mine: NextBatch, total: NextBatch) -> Generator[None]:
        batch = self._batches.begin()
        lag = self._batches.lag()
        begun = self._clock()
        self._updating = True
        update = yield from self._algorithm.update(batch)
        self._updating = False
        self._batches.end(update.feedback)
        if not self._settings.pauses:
            self._hearing.ended(self._clock() - begun)
        self._totals.updates += 1
        self._totals.steps_used += int(total.steps)
        self._totals.steps += int(total.new_steps)
        self._totals.agent_steps += int(total.new_valid)
        self._steps_trained += int(mine.new_steps)
        if update.publishes:
            self._publication.publish()
            self._batches.published(self.version)
        self._hand_over.updated()
        self._events.add(lag, update.metrics, checkpoint_due=self._hand_over.is_due)

    def _end(self) -> Generator[None]:
        while not self._stopping:
            yield
        while not self._hand_over.is_over:
            self._hand_over.send_if_asked()
            yield
        self._batches.discard()
        while not self._batches.is_finished:
            yield
        self._ended = True

    # --- role ----------------------------------------------------------------------------------------------------

    def obey(self, command: Command) -> None:
        self._stopping |= command.stop
        self._hand_over.obey(command)
        self._hearing.heard()
        if command.relief > self._relief:
            self._relief = command.relief
            self._batches.relieve()
        if not self._batches.is_fed and not self._stopping:
            raise ClusterError(f"every actor that feeds {self.label} is dead; the other trainers would wait forever")

    def forget(self, addresses: Collection[int]) -> None:
        self._batches.forget(addresses)
        self._publication.forget(addresses)

    def fill(self, report: Report) -> None:
        self._hearing.reported()
        events = self._events.take()
        if self._hand_over.is_first:
            report.updates.extend(events)

    @property
    def has_news(self) -> bool:
        # At its limit a trainer waits to be stopped, so the coordinator must hear at once.
        return len(self._events) > 0 or (self._at_limit and not self._stopping)

    def counters(self) -> dict[str, float]:
        return {
            "steps_trained": self._steps_trained,
            "updates": self._totals.updates,
            **self._time.counters(),
            "checkpoints": self._hand_over.sent,
            "checkpoint_seconds": self._hand_over.seconds,
            "dropped_fragments": self._totals.dropped_fragments,
            **self._batches.counters(),
        }

    @property
    def is_done(self) -> bool:
        return self._ended

    @property
    def moves(self) -> int:
        # An update that is under way always moves: it computes, or other trainers do.
        self._moves += self._publication.is_sending
        return self._moves

    def waits_for(self) -> str:
        return "" if self._updating or self._ended else self._batches.waits_for()

    def save_state(self) -> Mapping[str, Any]:
        return {**self._batches.save_state(), **self._publication.save_state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._batches.load_state(state)
        self._publication.load_state(state)

    def close(self) -> None:
        self._batches.close()
        self._publication.close()
