"""Policy lag: how old the data is that an update learns from, and how many fragments may be started.

Versions are counted in updates: the batch trained at version v makes version v + 1.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


def rollout_slots(version: int, started: int, lost: int, *, batch: int, max_policy_lag: int) -> int:
    """Fragments that may still start so that none is trained more than `max_policy_lag` updates late.

    Why: `version * batch` of the `started - lost` fragments are trained already, so at `max_policy_lag` 0 at most
    `batch` are open, all of which the next update needs, in whatever order they arrive. Above 0, fragments trained in
    the order of their starts keep the bound too: at most `(version + 1 + max_policy_lag) * batch` come before the end
    of the last one's batch. One that is overtaken by later ones may become older; the trainer then drops it, and it
    counts as lost. A fragment that was declared lost must never be trained after.

    Args:
        version: the trainer's version now.
        started: every grant ever given.
        lost: those that will never be trained (dead, dropped or faulted).
        batch: fragments of one update, over all trainers.
        max_policy_lag: in updates.
    """
    return max(0, (version + 1 + max_policy_lag) * batch - (started - lost))


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
