"""Targets of one step and of n, and what an error of them is worth as a priority.

Letters: R records of a window, B columns. Arrays are time-major; `rewards[t]` follows the action at t.

The functions use operators alone, so numpy arrays and tensors do alike: trainers learn by them, and replay ranks, which
know no torch, work out first priorities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

_A = TypeVar("_A", "Tensor", NDArray[Any])


class NStep(NamedTuple, Generic[_A]):
    """The target of record t is `sums[t] + discounts[t] * V`, with V of the observation at `t + lengths[t]`."""

    sums: _A
    """Discounted rewards of the records that were added up, `[R, B]`."""
    discounts: _A
    """What is left of V: gamma ^ length, 0 after a termination, `[R, B]`."""
    lengths: _A
    """Records that were added up, from 1 to n, int64 `[R, B]`."""


def n_step(rewards: _A, terminated: _A, stops: _A, *, gamma: float, n: int) -> NStep[_A]:
    """Sums of n rewards that end early where an episode or what is stored ends (Sutton 1988; Watkins 1989 for n = 1).

    R(t, m) = r_t                              if t terminated,
              r_t + gamma V_{t+1}              if t was truncated, is the last record known, or m = 1,
              r_t + gamma R(t + 1, m - 1)      else.

    By the contract of environments an invalid record follows an end alone, so none is added up. Targets of invalid
    records mean nothing.

    Args:
        rewards: float `[R, B]`.
        terminated: bool `[R, B]`; no value follows.
        stops: bool `[R, B]`; a sum ends there for another reason, and a value follows: truncated, or nothing later is
            stored. The window's last record ends all sums anyway.
        gamma: discount of one step.
        n: greatest number of rewards that are added up.
    """
    records = len(rewards)
    ends = terminated | stops
    going = ends | True
    # Products instead of constructors, which numpy and torch name differently.
    sums, discounts, lengths = 0 * rewards, 0 * rewards, 0 * going
    for k in range(min(n, records)):
        early = slice(0, records - k)
        later = slice(k, records)
        sums[early] += going[early] * gamma**k * rewards[later]
        lengths[early] += going[early]
        if k == n - 1:
            last = going[early]
        else:
            last = going[early] & ends[later]
            last[-1] = going[records - k - 1]
        discounts[early] += (last & ~terminated[later]) * gamma ** (k + 1)
        going[early] &= ~last
    return NStep(sums, discounts, lengths)


def one_step(rewards: _A, terminated: _A, values: _A, *, gamma: float) -> _A:
    """Targets of one reward: r + gamma (1 - terminated) V(s') (Sutton 1988).

    A truncated record, and the last that is stored, bootstrap like any other: s' is their real successor. Targets of
    invalid records mean nothing.

    Args:
        rewards: float `[...]`.
        terminated: bool `[...]`; no value follows.
        values: V(s'), float `[...]`.
        gamma: discount of one step.
    """
    targets: _A = rewards + (gamma * ~terminated) * values
    return targets


def priorities(errors: _A, valid: _A, *, max_share: float) -> _A:
    """What the errors of a window are worth: eta max |delta| + (1 - eta) mean |delta| (Kapturowski et al. 2019).

    Args:
        errors: float `[T, B]` over trained records, finite.
        valid: bool `[T, B]`; other records count in neither.
        max_share: eta.

    Returns:
        `[B]`; 0 where no record is valid.
    """
    sizes = abs(errors) * valid
    greatest: _A = sizes.max(0) if isinstance(sizes, np.ndarray) else sizes.amax(0)
    counts = valid.sum(0)
    means: _A = sizes.sum(0) / (counts + (counts == 0))
    mixed: _A = max_share * greatest + (1 - max_share) * means
    return mixed
