"""Windows of replay as single transitions, for rules without memory that look one step ahead.

Letters: T trained records of a window, B windows of this trainer, N = T x B rows, D dimensions of an action.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch, Context
from srlhpc.policies.contracts import ContinuousActor


class Transitions(NamedTuple):
    """The trained records of a batch side by side."""

    seen: Any
    """Observations as actor and critics take them, N rows."""
    later: Any
    """Observations of the successors of the records."""
    actions: Tensor
    """float32 `[N, D]` in [-1, 1]."""
    rewards: Tensor
    terminated: Tensor
    valid: Tensor
    weights: Tensor | None
    """Importance weights, float32 `[N]`, or None."""
    windows: tuple[int, int]
    """T and B."""

    def means_of_windows(self, sizes: Tensor) -> Tensor:
        """Means over the valid records of each window, float32 `[B]`, of numbers `[N]` that are 0 elsewhere."""
        return sizes.view(self.windows).sum(0) / self.valid.view(self.windows).sum(0).clamp(min=1)


def transitions(batch: Batch, actor: ContinuousActor[Any]) -> Transitions:
    """All records of a batch, which has neither burn-in nor records for longer sums."""
    assert batch.burn_in_steps == batch.after == 0
    records, columns = batch.valid.shape
    weights, valid = batch.weights, batch.valid.flatten()
    return Transitions(
        seen=actor.encode({key: array[:-1] for key, array in batch.observations.items()}),
        later=actor.encode({key: array[1:] for key, array in batch.observations.items()}),
        # What is no number would go through the layers into their gradients, whatever masks come behind.
        actions=torch.where(valid.unsqueeze(1), batch.actions.flatten(0, 1), 0.0),
        rewards=batch.rewards.flatten(),
        terminated=batch.terminated.flatten(),
        valid=valid,
        weights=None if weights is None else weights.expand(records, -1).reshape(-1),
        windows=(records, columns),
    )


def standard_normal(context: Context, version: int, *shape: int) -> Tensor:
    """Noise of one update on the trainer's device, float32, from its seed and the version alone."""
    return torch.randn(shape, generator=context.generator(version)).to(context.device, non_blocking=True)
