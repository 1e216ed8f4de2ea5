"""Which records each gradient step learns from.

Letters: T trained or warmed-up records of a fragment, B columns, C chunks of a fragment, N records or chunks of a
minibatch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch


@dataclass
class Minibatch:
    """Records of one gradient step: `[N]` shuffled ones, or with memory whole chunks of columns, `[T / C, N]`."""

    observations: dict[str, Tensor]
    state: dict[str, Tensor]
    first: Tensor
    action_masks: Tensor | None
    actions: Tensor
    old_log_probs: Tensor
    old_values: Tensor
    advantages: Tensor
    targets: Tensor
    valid: Tensor
    stale: Tensor | None = None
    weights: Tensor | None = None
    proximal: Tensor | None = None
    """These three as in `Targets`."""

    def after(self, records: int, state: dict[str, Tensor]) -> Minibatch:
        """What is left behind the first records of every chunk; `state` is the recurrent state there."""
        later: dict[str, Any] = {
            name: {key: array[records:] for key, array in value.items()} if isinstance(value, dict) else value[records:]
            for name, value in vars(self).items()
            if value is not None
        }
        return replace(self, **later | {"state": state})


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


_OF_AGE = ("stale", "weights", "proximal")


class Sampler(ABC):
    """Draws the minibatches of one epoch: equal shares of the batch, the same number on every trainer."""

    def __init__(self, batch: Batch, minibatches: int) -> None:
        self._batch = batch
        self._minibatches = minibatches
        self._steps, self._columns = batch.rewards.shape

    @abstractmethod
    def items(self) -> int:
        """What is shuffled: records or chunks."""

    @abstractmethod
    def valid_counts(self, minibatches: list[Tensor]) -> Tensor:
        """Valid records of each minibatch, float64 `[minibatches]`."""

    @abstractmethod
    def take(self, indices: Tensor, targets: Targets) -> Minibatch:
        """The records of one minibatch, by the indices of its items."""

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        """Indices of the items of each minibatch, on the batch's device; a single one is not shuffled."""
        items = self.items()
        if self._minibatches == 1:
            return [torch.arange(items, device=self._batch.rewards.device)]
        device = self._batch.rewards.device
        # Pinned, so that the copy does not wait for what the device computes.
        order = torch.randperm(items, generator=generator, pin_memory=device.type == "cuda")
        order = order.to(device, non_blocking=True)
        return list(order.chunk(self._minibatches))


class RecordSampler(Sampler):
    """Single records in any order, for policies without memory."""

    def items(self) -> int:
        return self._steps * self._columns

    def valid_counts(self, minibatches: list[Tensor]) -> Tensor:
        valid = self._batch.valid.flatten()
        return torch.stack([valid[indices].sum(dtype=torch.float64) for indices in minibatches])

    def take(self, indices: Tensor, targets: Targets) -> Minibatch:
        batch = self._batch

        def rows(tensor: Tensor) -> Tensor:
            return tensor.flatten(0, 1).index_select(0, indices)

        return _minibatch(batch, targets, rows, {})


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

    def take(self, indices: Tensor, targets: Targets) -> Minibatch:
        batch, columns = self._batch, self._columns
        # Without a valid record it is computed all the same: it adds zeros, and every trainer makes as many steps.
        if self._counted is not None and bool(self._counted[indices].any()):
            indices = indices[self._counted[indices]]
        # Item p is chunk p // B of column p % B, and a chunk's records lie B apart in the flattened batch.
        steps = torch.arange(self._length, device=indices.device).unsqueeze(1)
        records = ((indices // columns * self._length + steps) * columns + indices % columns).flatten()

        def chunks(tensor: Tensor) -> Tensor:
            rows = tensor.flatten(0, 1).index_select(0, records)
            return rows.view(self._length, len(indices), *rows.shape[1:])

        states = {name: rows.flatten(0, 1).index_select(0, indices) for name, rows in self._states.items()}
        return _minibatch(batch, targets, chunks, states)


def sampler(batch: Batch, minibatches: int) -> Sampler:
    """Chunks if the batch carries a recurrent state, else records."""
    return ChunkSampler(batch, minibatches) if batch.state else RecordSampler(batch, minibatches)


def _minibatch(
    batch: Batch, targets: Targets, records: Callable[[Tensor], Tensor], state: dict[str, Tensor]
) -> Minibatch:
    """The minibatch whose records `records` takes from each array."""
    return Minibatch(
        observations={name: records(array) for name, array in batch.observations.items()},
        state=state,
        first=records(batch.first),
        action_masks=None if batch.action_masks is None else records(batch.action_masks),
        actions=records(batch.actions),
        old_log_probs=records(batch.log_probs),
        old_values=records(targets.old_values),
        advantages=records(targets.advantages),
        targets=records(targets.values),
        valid=records(batch.valid),
        **{name: records(array) for name in _OF_AGE if (array := getattr(targets, name)) is not None},
    )
