"""A source of batches that files of episodes bring: nobody acts.

    drawn --(is_ready)--> begun, the next is drawn --(updated)--> begun ...

Letters: J trainers, B fragments of a trainer's batch, T records of a fragment (burn-in included).
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.data.episodes import Episodes
from srlhpc.data.epoch_draws import EpochDraws
from srlhpc.errors import UserError
from srlhpc.rl.policy_lag import PolicyLag
from srlhpc.roles.training.batch_source import Agree, BatchSource, NextBatch
from srlhpc.roles.training.checkpoint_part import Counters
from srlhpc.roles.training.staging import Staging


class RecordedBatches(BatchSource):
    """Fragments of recorded episodes, every record once an epoch over all trainers together.

    Args:
        episodes: in memory.
        staging: room for the batch that is trained, and for the next.
        draws: the same on all trainers of the policy, of all their batches.
        counters: those of the trainer.
        place: of this trainer among those of the policy.
        trainers: J.
        fragments: B.
        records: T.
        burn_in: records of T that only warm up memory.
        prefetch: whether the next batch is drawn while one is trained.

    A trainer that goes on from a checkpoint goes on in the epoch, as far as the updates before have come.
    """

    def __init__(
        self,
        episodes: Episodes,
        staging: tuple[Staging, Staging],
        draws: EpochDraws,
        counters: Counters,
        *,
        place: int,
        trainers: int,
        fragments: int,
        records: int,
        burn_in: int,
        prefetch: bool,
    ) -> None:
        self._episodes, self._draws, self._counters = episodes, draws, counters
        self._drawn, self._trained = staging
        self._place, self._trainers, self._fragments = place, trainers, fragments
        self._records, self._burn_in, self._prefetch = records, burn_in, prefetch
        draws.skip(counters.updates * fragments * trainers)
        self._before: Mapping[str, Any] = draws.save_state()
        """From where what is drawn now was drawn."""
        self._discarding = False

    def serve(self, *, updating: bool, starts: bool) -> bool:  # noqa: ARG002
        if self._discarding or self._drawn.is_full or (updating and not self._prefetch):
            return False
        self._before = self._draws.save_state()
        # Neighbours in the order of the epoch go to different trainers, so that all of them have it together.
        drawn = self._draws.draw(self._fragments * self._trainers)
        starts_here, lengths = (part[self._place :: self._trainers] for part in drawn)
        begin = (starts_here - self._burn_in) % self._episodes.num_rows
        fields = self._episodes.windows(begin, self._records, lengths + self._burn_in)
        # Who is in the game is seen wherever a sequence has a record or its last observation.
        fields["alive"] = np.ones_like(self._drawn.array("alive"))
        fields["valid"][: self._burn_in] = False
        missing = {name: np.zeros_like(self._drawn.array(name)) for name in self._drawn.names - fields.keys()}
        self._drawn.put({**fields, **missing}, 0)
        return True

    @property
    def is_ready(self) -> bool:
        return self._drawn.is_full

    def choose(self, agree: Agree) -> Generator[None]:  # noqa: ARG002
        """There is but one batch to choose."""
        yield from ()

    def next_batch(self) -> NextBatch:
        if not self._drawn.is_full:
            return NextBatch(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        valid = float(np.count_nonzero(self._drawn.array("valid")))
        return NextBatch(full=1.0, stale=0.0, steps=valid, valid=valid, new_steps=valid, new_valid=valid)

    def begin(self) -> Batch:
        self._drawn, self._trained = self._trained, self._drawn
        self._drawn.clear()
        self._before = self._draws.save_state()
        return self._trained.batch(version=self._counters.updates, steps=self._counters.steps, burn_in=self._burn_in)

    def lag(self) -> PolicyLag:
        """Nobody knows what acted."""
        return PolicyLag(0, 0.0, 0)

    def end(self, feedback: Tensor | None) -> None:
        """Records are drawn in an order that no feedback changes."""

    def drop_stale(self) -> None:
        raise AssertionError("recorded episodes do not grow old")

    def skip_empty(self) -> None:
        """A batch may hold nothing but last observations, if it is very small."""
        self._drawn.clear()
        self._before = self._draws.save_state()

    def published(self, version: int) -> None:
        """Nobody waits for a version."""

    def relieve(self) -> None:
        """Nobody waits for leave."""

    def discard(self) -> None:
        self._discarding = True

    @property
    def is_finished(self) -> bool:
        return self._discarding

    def forget(self, addresses: Collection[int]) -> None:
        """Nobody feeds it."""

    @property
    def is_fed(self) -> bool:
        return True

    def waits_for(self) -> str:
        return "waits for the other trainers or the coordinator, its batch is full"

    def counters(self) -> dict[str, float]:
        return {"epochs": float(self._draws.epoch)}

    def save_state(self) -> Mapping[str, Any]:
        return {"draws": dict(self._before)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        try:
            self._draws.load_state(state["draws"])
        except ValueError as error:
            raise UserError(
                f"the files of episodes are not those of the checkpoint: {error}; give the run the same files, or "
                "start anew from its weights: weights_from"
            ) from None
        self._drawn.clear()
        self._before = self._draws.save_state()

    def close(self) -> None:
        """Nothing is expected."""
