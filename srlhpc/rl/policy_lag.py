"""Policy lag: how old the data is that an update learns from, and how many fragments may be started.

Versions are counted in updates: the batch trained at version v makes version v + 1.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


def rollout_slots(
    begun: int, started: int, lost: int, *, batch: int, max_policy_lag: int, uses: int = 1, uses_left: int = 0
) -> int:
    """Fragments that may still start so that no use of them comes more than `max_policy_lag` updates late.

    Why: `begun * batch` of the `started - lost` fragments are in batches already. A fragment of the b-th batch is
    first used when the newest batch has made the `uses_left` updates that it still has and each batch between its
    `uses`, and last used `uses - 1` updates later: `uses_left + (b - begun) * uses + uses - 1` updates from now,
    which is at most `max_policy_lag` for b up to `begun + (max_policy_lag - uses_left - uses + 1) // uses`. With
    one use and the limit 0, at most `batch` are open, all of which the next update needs, in whatever order they
    arrive. With a larger limit, fragments trained in the order of their starts keep the bound too. One that is
    overtaken by later ones may become older; the trainer then drops it, and it counts as lost. A fragment that was
    declared lost must never be trained after. Where newer batches go before further uses of older ones (a queue),
    the bound holds for first uses; the trainer drops later ones.

    Args:
        begun: batches whose training has begun, of this trainer.
        started: every grant ever given.
        lost: those that will never be trained (dead, dropped or faulted).
        batch: fragments of one update, over all trainers.
        max_policy_lag: in updates; at least `uses - 1`, else nothing ever starts.
        uses: updates that are made of each batch.
        uses_left: those that are still made of batches that have begun, the one under way included.
    """
    return max(0, (begun + 1 + (max_policy_lag - uses_left - uses + 1) // uses) * batch - (started - lost))


class PolicyLag(NamedTuple):
    """Lag of a batch's fragments, in updates; zeros without valid fragments."""

    min: int
    mean: float
    max: int


def policy_lag(version: int, versions: Tensor, valid: Tensor) -> PolicyLag:
    """Trainer version minus the oldest behaviour version of each fragment.

    Args:
        version: the trainer's version when the update starts.
        versions: int64 `[T, B]`, of the behaviour policy at each record.
        valid: bool `[T, B]`; other records, and columns without any valid one, do not count.
    """
    trained = valid.any(0)
    if not bool(trained.any()):
        return PolicyLag(0, 0.0, 0)
    oldest = torch.where(valid, versions, torch.iinfo(versions.dtype).max).amin(0)[trained]
    lags = version - oldest
    return PolicyLag(int(lags.min()), float(lags.double().mean()), int(lags.max()))
