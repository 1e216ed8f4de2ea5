"""Which records each gradient step learns from.

Letters: T trained or warmed-up records of a fragment, B columns, C chunks of a fragment, N records or chunks of a
minibatch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.algorithms.stacked_fields import at


@dataclass
class Rows:
    """What a network sees of the records of one gradient step, and which of them count.

    `[N]` shuffled ones, or with memory whole chunks of columns, `[T / C, N]`.
    """

    observations: dict[str, Tensor]
    state: dict[str, Tensor]
    first: Tensor
    action_masks: Tensor | None
    valid: Tensor

    def after(self, records: int, state: dict[str, Tensor]) -> Self:
        """What is left behind the first records of every chunk; `state` is the recurrent state there."""
        return replace(self._each(lambda array: array[records:]), state=state)

    def to(self, device: torch.device) -> Self:
        """The same on a device."""
        return self._each(lambda array: array.to(device, non_blocking=True))

    def _each(self, change: Callable[[Tensor], Tensor]) -> Self:
        changed: dict[str, Any] = {
            name: {key: change(array) for key, array in value.items()} if isinstance(value, dict) else change(value)
            for name, value in vars(self).items()
            if value is not None
        }
        return replace(self, **changed)


@dataclass
class Minibatch(Rows):
    """Records of one gradient step of PPO."""

    actions: Tensor
    old_log_probs: Tensor
    old_values: Tensor
    advantages: Tensor
    targets: Tensor
    stale: Tensor | None = None
    weights: Tensor | None = None
    proximal: Tensor | None = None
    """These three as in `Targets`."""


@dataclass
class Targets:
    """What the estimators say about a batch, float32 `[T, B]` each; values in units of the value head."""

    advantages: Tensor
    old_values: Tensor
    values: Tensor
    stale: Tensor | None = None
    """bool `[T, B]`: older parameters acted it; None: that is not looked at."""
    weights: Tensor | None = None
    """float32 `[T, B]`: what a record counts; None: all count 1."""
    proximal: Tensor | None = None
    """float32 `[T, B]`: log-probabilities by the policy that ratios are clipped beside; None: the one that acted."""


class Selection(NamedTuple):
    """Where the records of one gradient step are in a batch."""

    records: Tensor
    """Places t * B + b of records, int64 `[N]`, or with memory `[T / C, N]`."""
    state: dict[str, Tensor]
    """Recurrent states before the chunks, `[N, ...]`; empty without memory."""

    def of(self, array: Tensor) -> Tensor:
        """Its records of an array `[T, B, ...]`: `[N, ...]`, or with memory `[T / C, N, ...]`."""
        return self._shaped(at(array, self.records.flatten()))

    def observations(self, batch: Batch) -> dict[str, Tensor]:
        """Its records of what was observed: key to what `of` gives."""
        seen = batch.observations_at(self.records.flatten())
        return {key: self._shaped(rows) for key, rows in seen.items()}

    def _shaped(self, rows: Tensor) -> Tensor:
        return rows if self.records.ndim == 1 else rows.view(*self.records.shape, *rows.shape[1:])

    def put(self, rows: Tensor, array: Tensor) -> None:
        """The inverse of `of`: writes rows to the places in a contiguous array that they belong to."""
        array.flatten(0, 1).index_copy_(0, self.records.flatten(), rows.flatten(0, self.records.ndim - 1))


class Sampler(ABC):
    """Draws the minibatches of one epoch: equal shares of the batch, the same number on every trainer."""

    def __init__(self, batch: Batch, minibatches: int) -> None:
        self._batch = batch
        self._minibatches = minibatches
        self._steps, self._columns = batch.valid.shape

    @abstractmethod
    def items(self) -> int:
        """What is shuffled: records or chunks."""

    @abstractmethod
    def valid_counts(self, minibatches: list[Tensor]) -> Tensor:
        """Valid records of each minibatch, float64 `[minibatches]`."""

    @abstractmethod
    def take(self, indices: Tensor) -> Selection:
        """The records of one minibatch, by the indices of its items."""

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        """Indices of the items of each minibatch, on the batch's device; a single one is not shuffled."""
        if self._minibatches == 1:
            return self.in_order()
        device = self._batch.valid.device
        # Pinned, so that the copy does not wait for what the device computes.
        order = torch.randperm(self.items(), generator=generator, pin_memory=device.type == "cuda")
        order = order.to(device, non_blocking=True)
        return list(order.chunk(self._minibatches))

    def in_order(self) -> list[Tensor]:
        """The same, not shuffled."""
        return list(torch.arange(self.items(), device=self._batch.valid.device).chunk(self._minibatches))


class RecordSampler(Sampler):
    """Single records in any order, for policies without memory."""

    def items(self) -> int:
        return self._steps * self._columns

    def valid_counts(self, minibatches: list[Tensor]) -> Tensor:
        valid = self._batch.valid.flatten()
        return torch.stack([valid[indices].sum(dtype=torch.float64) for indices in minibatches])

    def take(self, indices: Tensor) -> Selection:
        return Selection(indices, {})


class ChunkSampler(Sampler):
    """Whole chunks of columns, burn-in included, for policies with memory; a column is one chunk unless it is cut.

    Chunks without a valid record, as of agents that are not in the game, are not computed.
    """

    def __init__(self, batch: Batch, minibatches: int) -> None:
        super().__init__(batch, minibatches)
        self._states = {name: rows.unsqueeze(0) for name, rows in batch.state.items()}
        for name, rows in batch.chunk_states.items():
            self._states[name] = torch.cat([self._states[name], rows])
        self._chunks = len(next(iter(self._states.values())))
        self._length = self._steps // self._chunks
        counts = self._count(batch.valid)
        self._counted = None if bool(counts.all()) else counts > 0

    def items(self) -> int:
        return self._chunks * self._columns

    def valid_counts(self, minibatches: list[Tensor]) -> Tensor:
        counts = self._count(self._batch.valid)
        return torch.stack([counts[indices].sum() for indices in minibatches])

    def _count(self, valid: Tensor) -> Tensor:
        """Valid records of each chunk, float64 `[C * B]`."""
        return valid.reshape(self._chunks, self._length, -1).sum(1, dtype=torch.float64).flatten()

    def take(self, indices: Tensor) -> Selection:
        columns = self._columns
        # Without a valid record it is computed all the same: it adds zeros, and every trainer makes as many steps.
        if self._counted is not None and bool(self._counted[indices].any()):
            indices = indices[self._counted[indices]]
        # Item p is chunk p // B of column p % B, and a chunk's records lie B apart in the flattened batch.
        steps = torch.arange(self._length, device=indices.device).unsqueeze(1)
        records = (indices // columns * self._length + steps) * columns + indices % columns
        states = {name: rows.flatten(0, 1).index_select(0, indices) for name, rows in self._states.items()}
        return Selection(records, states)


def sampler(batch: Batch, minibatches: int) -> Sampler:
    """Chunks if the batch carries a recurrent state, else records."""
    return ChunkSampler(batch, minibatches) if batch.state else RecordSampler(batch, minibatches)


def seen(batch: Batch, selected: Selection) -> dict[str, Any]:
    """The arguments of `Rows` for some records of a batch."""
    return {
        "observations": selected.observations(batch),
        "state": selected.state,
        "first": selected.of(batch.first),
        "action_masks": None if batch.action_masks is None else selected.of(batch.action_masks),
        "valid": selected.of(batch.valid),
    }


def minibatch(batch: Batch, targets: Targets, selected: Selection) -> Minibatch:
    """Some records of a batch, and what PPO's loss takes of them."""

    def given(array: Tensor | None) -> Tensor | None:
        return None if array is None else selected.of(array)

    return Minibatch(
        **seen(batch, selected),
        actions=selected.of(batch.actions),
        old_log_probs=selected.of(batch.log_probs),
        old_values=selected.of(targets.old_values),
        advantages=selected.of(targets.advantages),
        targets=selected.of(targets.values),
        stale=given(targets.stale),
        weights=given(targets.weights),
        proximal=given(targets.proximal),
    )
