"""A source of batches that replay ranks draw: windows of several shards side by side, weights, priorities back.

    credit sent --> windows of every shard gathered --(is_ready)--> begun --(updated)--> priorities and credit sent

Letters: K shards that this trainer draws from, N windows of a message, B = K x N columns, R records of a window.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.comm.channel import Inbox, Message, Outbox
from srlhpc.data.layout import Array
from srlhpc.data.windows import (
    GENERATION,
    PRIORITY,
    PROBABILITY,
    SLOT,
    DrawHeader,
    WindowHeader,
    WindowShape,
    of_columns,
)
from srlhpc.errors import UserError
from srlhpc.rl.policy_lag import PolicyLag, policy_lag
from srlhpc.roles.training.batch_source import Agree, BatchSource, NextBatch
from srlhpc.roles.training.checkpoint_part import Counters
from srlhpc.roles.training.staging import Staging
from srlhpc.specs.replay import Draw, PrioritizedDraw


@dataclass
class Shard:
    """The trainer's ends of one replay rank, and what it has told."""

    windows: Inbox
    draws: Outbox
    steps: int = 0
    """Environment steps that had come in when its newest windows were drawn."""
    valid: int = 0
    """Valid records that had."""
    credit: int = 0
    """Messages of windows that it does not know yet that there is room for."""
    feedback: tuple[Array, Array, Array] | None = None
    """Slots, generations and priorities of windows that were trained, on their way."""
    said_last: bool = False


class DrawnWindows(BatchSource):
    """Batches of which every shard draws an equal part.

    Args:
        shards: in the order of their columns.
        staging: room for the batch that is trained, and for each that is drawn ahead.
        shape: of a window.
        draw: how windows are drawn.
        counters: those of the trainer.
        place: of this trainer among those of the policy.
        trainers: of the policy.
        ahead: batches that may be drawn before they are needed.
        device: of the batch.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        staging: Sequence[Staging],
        shape: WindowShape,
        draw: Draw,
        counters: Counters,
        *,
        place: int,
        trainers: int,
        ahead: int,
        device: torch.device,
    ) -> None:
        assert len(staging) == 2
        self._shards = shards
        self._gathered, self._trained = staging
        self._is_here = [False] * len(shards)
        self._shape, self._counters, self._device = shape, counters, device
        self._draw = draw if isinstance(draw, PrioritizedDraw) else None
        self._place, self._trainers = place, trainers
        self._least_probability = 0.0
        self._counted_steps = self._counted_valid = 0
        self._discarding = False
        for shard in shards:
            shard.credit = ahead

    # --- windows and wishes --------------------------------------------------------------------------------------

    def serve(self, *, updating: bool, starts: bool) -> bool:  # noqa: ARG002
        busy = False
        for place, shard in enumerate(self._shards):
            busy |= shard.windows.poll()
            busy |= self._discard(shard) if self._discarding else self._take(place, shard)
            shard.draws.poll()
            busy |= self._ask(shard)
        return busy

    def _take(self, place: int, shard: Shard) -> bool:
        if self._is_here[place] or (message := shard.windows.take()) is None:
            return False
        self._gathered.put(message.fields, place)
        shard.steps = int(message.header[WindowHeader.INSERTED_STEPS])
        shard.valid = int(message.header[WindowHeader.INSERTED_VALID])
        shard.windows.release(message)
        self._is_here[place] = True
        return True

    def _discard(self, shard: Shard) -> bool:
        busy = False
        while (message := shard.windows.take()) is not None:
            shard.windows.release(message)
            busy = True
        return busy

    def _ask(self, shard: Shard) -> bool:
        """Says what there is room for, with the priorities of windows that were trained."""
        if self._discarding:
            said, shard.said_last = shard.said_last, shard.draws.send_last()
            return shard.said_last and not said
        if not shard.credit or (message := shard.draws.acquire()) is None:
            return False
        header = message.header
        header[DrawHeader.CREDIT], shard.credit = shard.credit, 0
        header[DrawHeader.VERSION] = self._counters.updates
        header[DrawHeader.HAS_FEEDBACK] = shard.feedback is not None
        if shard.feedback is not None:
            _write(message, *shard.feedback)
            shard.feedback = None
        shard.draws.send(message)
        return True

    # --- one update ----------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        return self._gathered.is_full

    def choose(self, agree: Agree) -> Generator[None]:
        """The greatest weight of all trainers' batches is that of the least probable window."""
        if self._draw is None:
            return
        each = [0.0] * self._trainers
        if self._gathered.is_full:
            each[self._place] = float(self._gathered.array(PROBABILITY).min())
        known = yield from agree(*each)
        self._least_probability = min(known)

    @property
    def _trained_records(self) -> slice:
        """Records that are trained, of those of a window."""
        return slice(self._shape.burn_in_steps, self._shape.burn_in_steps + self._shape.fragment_steps)

    def next_batch(self) -> NextBatch:
        if not self._gathered.is_full:
            return NextBatch(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        trained = self._gathered.array("valid")[self._trained_records]
        steps, valid = self._told()
        return NextBatch(
            full=1.0,
            stale=0.0,
            steps=float(np.count_nonzero(of_columns(trained))),
            valid=float(np.count_nonzero(trained)),
            new_steps=float(steps - self._counted_steps),
            new_valid=float(valid - self._counted_valid),
        )

    def _told(self) -> tuple[int, int]:
        """Environment steps and valid records that came into all shards, as far as this trainer knows."""
        return sum(shard.steps for shard in self._shards), sum(shard.valid for shard in self._shards)

    def begin(self) -> Batch:
        self._gathered, self._trained = self._trained, self._gathered
        self._clear_gathered()
        self._counted_steps, self._counted_valid = self._told()
        return self._trained.batch(
            version=self._counters.updates,
            steps=self._counters.steps,
            burn_in=self._shape.burn_in_steps,
            after=self._shape.after,
            weights=self._weights(),
        )

    def _clear_gathered(self) -> None:
        self._gathered.clear()
        self._is_here = [False] * len(self._shards)

    def _weights(self) -> Tensor | None:
        """Importance weights (1 / (N P))^beta over their maximum (Schaul et al. 2016, section 3.4), float32 `[B]`.

        With true P = probability / shards, both N and the number of shards cancel.
        """
        if self._draw is None:
            return None
        ratios = self._least_probability / self._trained.array(PROBABILITY)
        weights = ratios ** self._draw.beta_at(self._counters.steps)
        return torch.from_numpy(weights.astype(np.float32)).to(self._device)

    def lag(self) -> PolicyLag:
        """Ages of the drawn windows: of the oldest trained record of each."""
        versions, valid = map(torch.from_numpy, self._trained.ages(self._trained_records))
        return policy_lag(self._counters.updates, versions, valid)

    def end(self, feedback: Tensor | None) -> None:
        if self._draw is not None:
            if feedback is None:
                raise UserError(
                    "the algorithm's update returned no feedback, but replay draws by priorities; return them "
                    "(`Update.feedback`), or let `gives_feedback` in `needs` of its Settings be false"
                )
            self._give_back(feedback.detach().cpu().numpy())
        for shard in self._shards:
            shard.credit += 1

    def _give_back(self, priorities: Array) -> None:
        """Every shard gets the priorities of its own columns."""
        slots, generations = (self._trained.array(name) for name in (SLOT, GENERATION))
        each = zip(*(np.split(array, len(self._shards)) for array in (slots, generations, priorities)), strict=True)
        for shard, parts in zip(self._shards, each, strict=True):
            assert shard.feedback is None, "priorities leave before the next windows of their shard come"
            slot, generation, priority = (part.copy() for part in parts)
            shard.feedback = (slot, generation, priority)

    def drop_stale(self) -> None:
        raise AssertionError("windows of replay are meant to be old")

    def skip_empty(self) -> None:
        """Only windows with a valid trained record are drawn, so there is none on any trainer only by a fault."""
        raise AssertionError("replay drew windows without a valid record")

    def published(self, version: int) -> None:
        """Records may be of any version."""

    def relieve(self) -> None:
        """Replay ranks give leave to all who ask; nothing waits here."""

    # --- the end, the dead, reports ------------------------------------------------------------------------------

    def discard(self) -> None:
        self._discarding = True

    @property
    def is_finished(self) -> bool:
        return all(shard.said_last and shard.windows.is_finished for shard in self._shards)

    def forget(self, addresses: Collection[int]) -> None:
        """Nobody dead feeds a trainer: the step ends when a replay rank dies."""

    @property
    def is_fed(self) -> bool:
        return True

    def waits_for(self) -> str:
        missing = self._is_here.count(False)
        if not missing:
            return "waits for the other trainers or the coordinator, its batch is full"
        return f"waits for windows of {missing} of {len(self._shards)} replay ranks"

    def counters(self) -> dict[str, float]:
        return {}

    def save_state(self) -> Mapping[str, Any]:
        """What is gathered, what shards have told, and what is to be told to them; called between updates."""
        shards = {
            str(place): {
                "steps": shard.steps,
                "valid": shard.valid,
                "credit": shard.credit,
                "is_here": self._is_here[place],
                **({"feedback": dict(zip(_FEEDBACK, shard.feedback, strict=True))} if shard.feedback else {}),
            }
            for place, shard in enumerate(self._shards)
        }
        gathered = {"gathered": self._gathered.save_state()} if self._gathered.filled else {}
        return {"shards": shards, "counted": {"steps": self._counted_steps, "valid": self._counted_valid}, **gathered}

    def load_state(self, state: Mapping[str, Any]) -> None:
        for place, shard in enumerate(self._shards):
            saved = state["shards"][str(place)]
            shard.steps, shard.valid, shard.credit = (int(saved[name]) for name in ("steps", "valid", "credit"))
            self._is_here[place] = bool(saved["is_here"])
            if "feedback" in saved:
                slot, generation, priority = (np.asarray(saved["feedback"][name]) for name in _FEEDBACK)
                shard.feedback = (slot, generation, priority)
        self._counted_steps, self._counted_valid = (int(state["counted"][name]) for name in ("steps", "valid"))
        if "gathered" in state:
            is_whole = self._gathered.load_state(state["gathered"])
            assert is_whole, "what is under way is loaded only into the same arrangement"

    def close(self) -> None:
        for shard in self._shards:
            shard.windows.close()


_FEEDBACK = (SLOT, GENERATION, PRIORITY)


def _write(message: Message, slot: Array, generation: Array, priority: Array) -> None:
    for name, array in zip(_FEEDBACK, (slot, generation, priority), strict=True):
        message.fields[name][:] = array
