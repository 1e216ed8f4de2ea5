"""Gymnasium's action spaces as this package's: how actions of a policy become actions that a simulator takes.

Letters: N actions, one per environment or agent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs._choices import require_few_choices
from srlhpc.environment import ActionSpace, Array, Continuous, Discrete, MultiDiscrete
from srlhpc.errors import UserError


@dataclass(frozen=True)
class ActionCodec:
    """One action space in both languages. What is decoded is in the simulator's space, whatever the policy drew."""

    space: ActionSpace
    decode: Callable[[Array], Array]
    """`[N, ...]` of `space` to N actions that the simulator takes."""
    idle: Array
    """Any legal action of `space`, for records whose action is ignored."""
    takes_arrays: bool = True
    """Whether one action is an array, even one without axes; else a number."""

    def one_by_one(self, decoded: Array) -> Sequence[Any]:
        """Decoded actions for simulators that are stepped one after the other."""
        # The rows of an array of one axis are numbers, which are no members of a box without axes.
        if self.takes_arrays and decoded.ndim == 1:
            return [decoded[row, ...] for row in range(len(decoded))]
        return list(decoded)


def action_codec(space: Any, where: str, remedy: str = "turn it into one of them with a wrapper") -> ActionCodec:
    """The action space for a Gymnasium action space.

    Boxes are scaled from [-1, 1] to their bounds; of an integer box every integer gets an equal share of [-1, 1].
    Dimensions without bounds are taken as they are, rounded to the nearest integer in an integer box. As no bound
    counts, besides infinity, the largest number of the box's dtype or more than half of float32's.

    Raises:
        UserError: the space is of another type, or has no dimension.
    """
    from gymnasium import spaces

    match space:
        case spaces.Discrete():
            decode = _numbers_from(int(space.start), space.dtype)
            codec = ActionCodec(Discrete(int(space.n)), decode, np.zeros((), np.int64), takes_arrays=False)
        case spaces.MultiDiscrete():
            codec = _choices(space.nvec, space.start, space.dtype)
        case spaces.MultiBinary():
            codec = _choices(np.full(space.shape, 2), np.zeros(space.shape, np.int64), space.dtype)
        case spaces.Box() if space.dtype.kind == "f":
            codec = _scaled(space.low, space.high, space.dtype)
        case spaces.Box():
            codec = _counted(space.low, space.high, space.bounded_below & space.bounded_above)
        case _:
            raise UserError(
                f"{where}: action space {type(space).__name__} is not understood; known are Discrete, MultiDiscrete, "
                f"MultiBinary and Box; {remedy}"
            )
    advice = "split it into the digits of a MultiDiscrete, or make it a Box, by a wrapper of yours"
    require_few_choices(codec.space.mask_size, f"{where}: its action space {type(space).__name__}", advice)
    if codec.space.array.shape == (0,):
        raise UserError(f"{where}: action space {space} has no dimension, so there is nothing to decide")
    return codec


def _numbers_from(start: int, dtype: Any) -> Callable[[Array], Array]:
    def decode(actions: Array) -> Array:
        return (actions + start if start else actions).astype(dtype, copy=False)

    return decode


def _choices(choices: NDArray[Any], starts: NDArray[Any], dtype: Any) -> ActionCodec:
    starts = starts.astype(np.int64)

    def decode(actions: Array) -> Array:
        decoded: Array = (actions.reshape(-1, *choices.shape) + starts).astype(dtype)
        return decoded

    space = MultiDiscrete(tuple(int(n) for n in choices.reshape(-1)))
    return ActionCodec(space, decode, np.zeros(choices.size, np.int64))


def _scaled(low: NDArray[Any], high: NDArray[Any], dtype: Any) -> ActionCodec:
    """A box of floats."""
    bounded = _is_bound(low, dtype) & _is_bound(high, dtype)
    all_bounded = bool(bounded.all())
    bottom, top = np.where(bounded, low, -1.0).astype(np.float64), np.where(bounded, high, 1.0).astype(np.float64)
    centre, half = ((top + bottom) / 2).astype(np.float32), ((top - bottom) / 2).astype(np.float32)
    largest = np.finfo(dtype).max
    lowest, highest = np.maximum(low, -largest), np.minimum(high, largest)

    def decode(actions: Array) -> Array:
        shaped = actions.reshape(-1, *low.shape)
        clipped = np.minimum(np.maximum(shaped, -1.0), 1.0)
        if not all_bounded:
            clipped = np.where(bounded, clipped, shaped)
        # In float32 centre + half may round to just above the bound, which simulators that check refuse.
        decoded: Array = np.minimum(np.maximum(clipped * half + centre, lowest), highest).astype(dtype, copy=False)
        return decoded

    return ActionCodec(Continuous(low.size), decode, np.zeros(low.size, np.float32))


def _is_bound(bound: NDArray[Any], dtype: Any) -> NDArray[np.bool_]:
    """Whether a float is meant as a bound: `finfo.max` says that there is none, and spans must fit float32."""
    size = np.abs(bound.astype(np.float64))
    return (size < float(np.finfo(dtype).max)) & (size <= float(np.finfo(np.float32).max) / 2)


def _counted(low: NDArray[Any], high: NDArray[Any], bounded: NDArray[np.bool_]) -> ActionCodec:
    """A box of integers: the k-th of n between the bounds is meant by [-1 + 2k / n, -1 + 2 (k + 1) / n)."""
    wide = np.int64 if low.dtype.kind == "i" else np.uint64
    lowest, highest = low.astype(wide), high.astype(wide)
    # Modulo 2^64, where no span overflows: lowest + k is right even if int64 holds neither the span nor k.
    base, last = lowest.view(np.uint64), highest.view(np.uint64) - lowest.view(np.uint64)
    count = last.astype(np.float64) + 1.0

    def decode(actions: Array) -> Array:
        drawn = actions.reshape(-1, *low.shape).astype(np.float64)
        place = np.maximum(np.floor((drawn + 1.0) / 2.0 * count), 0.0)
        # Above 2^53 not every integer is a float; a place that is not below the last one is the last one.
        steps = np.where(place < last, np.where(place < last, place, 0.0).astype(np.uint64), last)
        return np.where(bounded, (base + steps).view(wide), rounded(drawn)).astype(low.dtype)

    def rounded(drawn: Array) -> Array:
        near = np.rint(drawn)
        inside = (near > lowest) & (near < highest)
        return np.where(inside, np.where(inside, near, 0.0).astype(wide), np.where(near <= lowest, lowest, highest))

    return ActionCodec(Continuous(low.size), decode, np.zeros(low.size, np.float32))
