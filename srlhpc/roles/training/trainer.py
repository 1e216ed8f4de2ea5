"""The trainer: gathers blocks into batches, learns, publishes parameters, hands over its part of checkpoints.

    waiting --(batch full on all trainers)--> updating --> published --(batch has uses left)--> updating
                                                             published --(no use left)--> waiting
    with a queue of batches: published --(a new batch is full, or any has uses left)--> updating
    waiting --(any trainer is told to stop)--> last part sent --> discarding until every actor said LAST --> done

Streams are served at every yield of an update, since MPI moves nothing while nobody polls.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from srlhpc.algorithms.algorithm import Algorithm, Reducer
from srlhpc.comm.channel import Inbox, Message
from srlhpc.comm.protocol import Command, Report
from srlhpc.errors import ClusterError
from srlhpc.policies.policy import Policy, write_vector
from srlhpc.roles.checkpoint_parts import PartSender
from srlhpc.roles.role import Role
from srlhpc.roles.time_use import TimeUse
from srlhpc.roles.training.batches import Batches
from srlhpc.roles.training.checkpoint_part import Counters, checkpoint_part, counted, part_tensors
from srlhpc.roles.training.copy_stream import PartCopy
from srlhpc.roles.training.grants import LagLimiter
from srlhpc.roles.training.hearing import Hearing

log = logging.getLogger(__name__)

_BUSY_SECONDS = 100e-6
MOST_EVENTS = 50
"""Updates that are told in one report; of more, which a slow coordinator leaves waiting, only the newest are."""


class AgreeingReducer(Reducer, Protocol):
    """A reducer that also agrees on small numbers (comm/process_group.py)."""

    def agree(self, flags: Sequence[float]) -> Generator[None, None, list[float]]:
        """Sums of each flag over the policy's trainers."""


class Source(Protocol):
    """Where parameters are published (comm/parameters.py)."""

    def publish(self, version: int, write: Callable[[NDArray[np.float32]], None]) -> bool: ...

    def poll(self) -> bool: ...

    @property
    def is_sending(self) -> bool: ...

    def forget(self, address: int) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class TrainerSettings:
    """What a trainer needs to know beside its channels."""

    policy: str
    burn_in: int
    prefetch: bool
    stop_steps: int | None
    """Trained steps at which it waits for the coordinator to stop the run; None: another policy decides."""
    stop_updates: int | None
    checkpoint_updates: int | None
    """Updates between checkpoints that this trainer asks for; None: the coordinator's clock decides."""
    holds: bool
    """Serial mode: nothing starts between a checkpoint that is due and its end."""


class Trainer(Role):
    """One trainer of one policy. Only the first has a `source` and a `parts` sender.

    `feeders` are the addresses of the actors whose blocks come here; `part_copy` is where a GPU's part is copied to.
    """

    def __init__(
        self,
        label: str,
        settings: TrainerSettings,
        policy: Policy,
        algorithm: Algorithm,
        reducer: AgreeingReducer,
        blocks: Inbox,
        batches: Batches,
        *,
        source: Source | None,
        parts: PartSender | None,
        lag_limiter: LagLimiter | None,
        counters: Counters,
        feeders: Collection[int],
        part_copy: PartCopy | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.label = label
        self._settings = settings
        self._policy, self._algorithm, self._reducer = policy, algorithm, reducer
        self._blocks = blocks
        self._batches = batches
        self._source, self._parts, self._lag_limiter = source, parts, lag_limiter
        self._part_copy = part_copy
        self._totals = counters
        self._feeders = set(feeders)
        self._clock = clock
        self._updating = False
        self._on_gpu = any(parameter.is_cuda for parameter in policy.parameters())
        self._asked = 0
        self._sent = 0
        self._written = 0
        self._due = False
        self._stopping = False
        self._discarding = False
        self._ended = False
        self._events: list[dict[str, Any]] = []
        self._steps_trained = 0
        self._empty_batches = 0
        self._moves = 0
        self._relief = 0
        self._hearing = Hearing(clock)
        self._checkpoint_seconds = 0.0
        self._time = TimeUse(clock)
        self._life = self._live()

    @property
    def version(self) -> int:
        """Updates contained in the parameters."""
        return self._totals.updates

    # --- polling -------------------------------------------------------------------------------------------------

    def poll(self) -> bool:
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
        busy = self._blocks.poll()
        busy |= self._collect()
        if self._source is not None:
            busy |= self._source.poll()
        if self._lag_limiter is not None:
            busy |= self._lag_limiter.listen()
            if not self._holding and not self._stopping:
                busy |= self._lag_limiter.grant(self.version, self._batches.begun, self._batches.left)
        if self._parts is not None:
            begun = self._clock()
            if self._parts.poll():
                self._checkpoint_seconds += self._clock() - begun
                busy = True
        return busy

    @property
    def _holding(self) -> bool:
        return self._settings.holds and (self._due or self._at_limit or self._asked > self._written)

    @property
    def _at_limit(self) -> bool:
        steps, updates = self._settings.stop_steps, self._settings.stop_updates
        return (steps is not None and self._totals.steps >= steps) or (
            updates is not None and self._totals.updates >= updates
        )

    # --- blocks --------------------------------------------------------------------------------------------------

    def _collect(self) -> bool:
        if self._updating and not self._settings.prefetch:
            return False
        busy = False
        while (self._discarding or not self._batches.gathered.is_full) and (block := self._blocks.take()) is not None:
            self._take(block)
            self._blocks.release(block)
            busy = True
        return busy

    def _take(self, block: Message) -> None:
        if self._lag_limiter is not None:
            self._lag_limiter.received(block.sender)
        if self._discarding:
            return
        if self._batches.is_late(block, self.version, updating=self._updating):
            self._lose(block.fields["valid"].shape[1] * block.fields["valid"].shape[2])
            return
        self._batches.gathered.add(block)

    def _lose(self, fragments: int) -> None:
        """So many fragments are too old and will not be trained."""
        self._totals.dropped_fragments += fragments
        if self._lag_limiter is not None:
            self._lag_limiter.lose(fragments)

    # --- life ----------------------------------------------------------------------------------------------------

    def _live(self) -> Generator[None]:
        self._publish()
        while True:
            while not self._stopping and not self._may_go_on:
                self._hand_over()
                yield
            self._hand_over()
            if self._batches.has_queue:
                (new,) = yield from self._agree(self._batches.gathered.is_full)
                self._batches.choose(new=new == self._reducer.trainers)
            staged, worn = self._batches.next, self._batches.is_stale(self.version)
            full, stop, worn_anywhere, steps, valid = yield from self._agree(
                staged.is_full, self._stopping, worn, staged.steps, staged.valid
            )
            if stop:
                break
            if worn_anywhere:
                self._lose(self._batches.drop_stale())
            elif full == self._reducer.trainers and valid:
                yield from self._update(int(steps), int(valid))
            elif full == self._reducer.trainers:
                self._skip_empty_batch()
        yield from self._end()

    @property
    def _may_go_on(self) -> bool:
        return self._batches.is_ready and not (self._holding or self._at_limit or self._hearing.is_due)

    def _agree(self, *flags: float) -> Generator[None, None, list[float]]:
        """Sums of the flags over all trainers. Others may have no batch yet, so a part that is asked for leaves now."""
        agreeing = self._reducer.agree([float(flag) for flag in flags])
        while True:
            try:
                next(agreeing)
            except StopIteration as agreed:
                sums: list[float] = agreed.value
                return sums
            self._hand_over()
            yield

    def _skip_empty_batch(self) -> None:
        """No agent was in the game in any record of any trainer: there is nothing to learn."""
        if not self._empty_batches:
            log.warning("a batch has no valid record (is any agent alive?); such batches are skipped")
        self._empty_batches += 1
        if self._lag_limiter is not None:
            self._lag_limiter.lose(self._batches.gathered.columns)
        self._batches.gathered.clear()

    def _update(self, steps: int, valid: int) -> Generator[None]:
        is_first_use = self._batches.begin()
        staged = self._batches.trained
        batch = staged.batch(
            version=self.version,
            steps=self._totals.steps,
            burn_in=self._settings.burn_in,
            is_first_use=is_first_use,
        )
        lag = staged.lag(self.version)
        begun = self._clock()
        self._updating = True
        metrics = yield from self._algorithm.update(batch)
        self._updating = False
        self._batches.end_use()
        if not self._settings.holds:
            self._hearing.ended(self._clock() - begun)
        self._totals.updates += 1
        self._totals.steps_used += steps
        if is_first_use:
            self._totals.steps += steps
            self._totals.agent_steps += valid
            self._steps_trained += staged.steps
        self._publish()
        every = self._settings.checkpoint_updates
        if every is not None and (self._totals.updates % every == 0 or self._totals.updates == 1):
            self._due = True
        del self._events[: -MOST_EVENTS + 1]
        self._events.append(
            {
                "policy": self._settings.policy,
                "updates": self._totals.updates,
                "steps": self._totals.steps,
                "agent_steps": self._totals.agent_steps,
                "steps_used": self._totals.steps_used,
                "dropped_fragments": self._totals.dropped_fragments,
                "lag": [lag.min, lag.mean, lag.max],
                "checkpoint_due": self._due,
                "metrics": metrics,
            }
        )

    def _publish(self) -> None:
        if self._source is not None:
            self._source.publish(self.version, lambda vector: write_vector(self._policy, vector))

    def _end(self) -> Generator[None]:
        while not self._stopping:
            yield
        while self._parts is not None and (self._sent < self._asked or not self._parts.is_idle):
            self._hand_over()
            yield
        self._discarding = True
        while not self._blocks.is_finished:
            yield
        self._ended = True

    # --- checkpoints ---------------------------------------------------------------------------------------------

    def _hand_over(self) -> None:
        """Sends this policy's part if one was asked for; called only between updates."""
        if self._parts is None or self._sent >= self._asked or not self._parts.is_idle:
            return
        self._sent = self._asked
        self._due = False
        begun = self._clock()
        if self._part_copy is None:
            self._parts.begin(self._sent, self.part())
        else:
            copied = self._part_copy.begin(part_tensors(self._policy, self._algorithm))
            tree = copied | {"counters": counted(self._totals)}
            self._parts.begin(self._sent, tree, self._part_copy.has_landed)
        self._checkpoint_seconds += self._clock() - begun

    def part(self) -> dict[str, Any]:
        """This policy's part of a checkpoint (see `checkpoint_part`)."""
        return checkpoint_part(self._policy, self._algorithm, self._totals)

    # --- role ----------------------------------------------------------------------------------------------------

    def obey(self, command: Command) -> None:
        self._stopping |= command.stop
        self._asked = max(self._asked, command.checkpoint)
        self._written = max(self._written, command.written)
        self._hearing.heard()
        if command.relief > self._relief:
            self._relief = command.relief
            self._relieve()
        if not self._feeders and not self._stopping:
            raise ClusterError(f"every actor that feeds {self.label} is dead; the other trainers would wait for ever")

    def _relieve(self) -> None:
        """Nothing moves in the run: groups may go on beyond the limits; what a full batch has no room for is lost."""
        if self._lag_limiter is not None:
            self._lag_limiter.grant_all(self.version)
        while self._batches.gathered.is_full and (block := self._blocks.take()) is not None:
            if self._lag_limiter is not None:
                self._lag_limiter.received(block.sender)
            self._lose(block.fields["valid"].shape[1] * block.fields["valid"].shape[2])
            self._blocks.release(block)

    def forget(self, addresses: Collection[int]) -> None:
        self._feeders.difference_update(addresses)
        for address in addresses:
            self._blocks.forget(address)
            if self._source is not None:
                self._source.forget(address)
        if self._lag_limiter is not None:
            self._lag_limiter.forget(addresses)

    def fill(self, report: Report) -> None:
        self._hearing.reported()
        if self._parts is not None:
            report.updates.extend(self._events)
        self._events.clear()

    @property
    def has_news(self) -> bool:
        return bool(self._events) or self._holding or (self._at_limit and not self._stopping)

    def counters(self) -> dict[str, float]:
        return {
            "steps_trained": self._steps_trained,
            "updates": self._totals.updates,
            **self._time.counters(),
            "checkpoints": self._sent,
            "checkpoint_seconds": self._checkpoint_seconds,
            "dropped_fragments": self._totals.dropped_fragments,
            "dropped_uses": self._batches.dropped_uses,
            "empty_batches": self._empty_batches,
        }

    @property
    def is_done(self) -> bool:
        return self._ended

    @property
    def moves(self) -> int:
        # An update that is under way always moves: it computes, or other trainers do.
        if self._source is not None and self._source.is_sending:
            self._moves += 1
        return self._moves

    def waits_for(self) -> str:
        if self._updating or self._ended:
            return ""
        gathered = self._batches.gathered
        if gathered.is_full:
            text = "waits for the other trainers or the coordinator, its batch is full"
        else:
            text = f"waits for blocks, has {gathered.filled} of {gathered.blocks}"
        return text + (
            f", and {self._lag_limiter.asking} groups ask it for grants" if self._lag_limiter is not None else ""
        )

    def save_state(self) -> Mapping[str, Any]:
        """The order of asking for grants, and a batch that has uses left."""
        state = dict(self._lag_limiter.save_state()) if self._lag_limiter is not None else {}
        return state | self._batches.save_state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        if self._lag_limiter is not None:
            self._lag_limiter.load_state(state)
        self._batches.load_state(state)

    def close(self) -> None:
        self._blocks.close()
        if self._source is not None:
            self._source.close()
        if self._lag_limiter is not None:
            self._lag_limiter.close()
