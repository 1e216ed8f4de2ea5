"""A source of batches that gathers blocks as actors send them, and trains each batch once or several times."""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Mapping
from typing import Any

from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.comm.channel import Inbox, Message
from srlhpc.errors import UserError, counted
from srlhpc.rl.policy_lag import PolicyLag
from srlhpc.roles.training.batch_source import Agree, BatchSource, NextBatch
from srlhpc.roles.training.batches import Batches
from srlhpc.roles.training.checkpoint_part import Counters
from srlhpc.roles.training.grants import LagLimiter

log = logging.getLogger(__name__)


class BlockQueue(BatchSource):
    """The blocks of a trainer's pool, side by side in batches, with grants for as many as the policy lag allows.

    Args:
        blocks: the trainer's pool.
        batches: room for what is gathered and trained.
        lag_limiter: None where fragments start without a grant.
        counters: those of the trainer.
        trainers: of the policy.
        feeders: addresses of the actors whose blocks come here.
        burn_in: records in front of every fragment that are not trained.
        prefetch: whether the next batch is gathered while one is trained.
    """

    def __init__(
        self,
        blocks: Inbox,
        batches: Batches,
        lag_limiter: LagLimiter | None,
        counters: Counters,
        *,
        trainers: int,
        feeders: Collection[int],
        burn_in: int,
        prefetch: bool,
    ) -> None:
        self._blocks, self._batches, self._lag_limiter = blocks, batches, lag_limiter
        self._counters, self._trainers = counters, trainers
        self._feeders = set(feeders)
        self._burn_in, self._prefetch = burn_in, prefetch
        self._published = counters.updates
        self._updating = False
        self._discarding = False
        self._empty_batches = 0

    # --- blocks and grants ---------------------------------------------------------------------------------------

    def serve(self, *, updating: bool, starts: bool) -> bool:
        self._updating = updating
        busy = self._blocks.poll()
        busy |= self._collect()
        if self._lag_limiter is not None:
            busy |= self._lag_limiter.listen()
            if starts:
                busy |= self._lag_limiter.grant(self._published, self._batches.begun, self._batches.uses_left)
        return busy

    def _collect(self) -> bool:
        if self._updating and not self._prefetch:
            return False
        busy = False
        while (self._discarding or not self._batches.gathered.is_full) and (block := self._blocks.take()) is not None:
            self._take(block)
            self._blocks.release(block)
            busy = True
        return busy

    def _take(self, block: Message) -> None:
        # Before it may be discarded: it is no longer under way.
        if self._lag_limiter is not None:
            self._lag_limiter.received(block.sender)
        if self._discarding:
            return
        if self._batches.is_late(block, self._counters.updates, updating=self._updating):
            self._lose(self._batches.gathered.block_columns)
            return
        self._batches.gathered.add(block)

    def _lose(self, fragments: int) -> None:
        """Counts fragments that are too old and will not be trained."""
        self._counters.dropped_fragments += fragments
        if self._lag_limiter is not None:
            self._lag_limiter.lose(fragments)

    def relieve(self) -> None:
        if self._lag_limiter is not None:
            self._lag_limiter.grant_all(self._published)
        while self._batches.gathered.is_full and (block := self._blocks.take()) is not None:
            if self._lag_limiter is not None:
                self._lag_limiter.received(block.sender)
            self._lose(self._batches.gathered.block_columns)
            self._blocks.release(block)

    # --- one update ----------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        return self._batches.is_ready

    def choose(self, agree: Agree) -> Generator[None]:
        if self._batches.has_queue:
            (full,) = yield from agree(self._batches.gathered.is_full)
            self._batches.choose(new=full == self._trainers)

    def next_batch(self) -> NextBatch:
        batches = self._batches
        batch, is_new = batches.next, batches.begins_new
        return NextBatch(
            full=float(batch.is_full),
            stale=float(batches.is_stale(self._counters.updates)),
            steps=float(batch.steps),
            valid=float(batch.valid),
            new_steps=float(batch.steps * is_new),
            new_valid=float(batch.valid * is_new),
        )

    def begin(self) -> Batch:
        is_first_use = self._batches.begin()
        return self._batches.trained.batch(
            version=self._counters.updates,
            steps=self._counters.steps,
            burn_in=self._burn_in,
            is_first_use=is_first_use,
        )

    def lag(self) -> PolicyLag:
        return self._batches.trained.lag(self._counters.updates)

    def end(self, feedback: Tensor | None) -> None:
        if feedback is not None:
            raise UserError(
                "the algorithm's update returned feedback, but fresh batches are not drawn by it, so it would be lost; "
                "return None, or declare it (`gives_feedback` in `needs` of its Settings), so that the plan refuses "
                "such a job"
            )
        self._batches.end_use()

    def published(self, version: int) -> None:
        self._published = version

    def drop_stale(self) -> None:
        self._lose(self._batches.drop_stale())

    def skip_empty(self) -> None:
        """No agent was in the game in any record of any trainer: there is nothing to learn."""
        if not self._empty_batches:
            log.warning("a batch has no valid record (is any agent alive?); such batches are skipped")
        self._empty_batches += 1
        if self._lag_limiter is not None:
            self._lag_limiter.lose(self._batches.gathered.columns)
        self._batches.gathered.clear()

    # --- the end, the dead, reports ------------------------------------------------------------------------------

    def discard(self) -> None:
        self._discarding = True

    @property
    def is_finished(self) -> bool:
        return self._blocks.is_finished

    def forget(self, addresses: Collection[int]) -> None:
        self._feeders.difference_update(addresses)
        for address in addresses:
            self._blocks.forget(address)
        if self._lag_limiter is not None:
            self._lag_limiter.forget(addresses)

    @property
    def is_fed(self) -> bool:
        return bool(self._feeders)

    def waits_for(self) -> str:
        gathered = self._batches.gathered
        if gathered.is_full:
            text = "waits for the other trainers or the coordinator, its batch is full"
        else:
            text = f"waits for blocks, has {gathered.filled} of {gathered.blocks}"
        if self._lag_limiter is None:
            return text
        return f"{text}, and has {counted(self._lag_limiter.asking, 'request')} for grants"

    def counters(self) -> dict[str, float]:
        return {"dropped_uses": self._batches.dropped_uses, "empty_batches": self._empty_batches}

    def save_state(self) -> Mapping[str, Any]:
        """The counts of grants, and the batches; called between updates."""
        grants = {"grants": self._lag_limiter.save_state()} if self._lag_limiter is not None else {}
        return grants | self._batches.save_state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        # States from when nothing was open at a checkpoint have no counts.
        if self._lag_limiter is not None and "grants" in state:
            self._lag_limiter.load_state(state["grants"])
        self._batches.load_state(state)

    def close(self) -> None:
        self._blocks.close()
        if self._lag_limiter is not None:
            self._lag_limiter.close()
