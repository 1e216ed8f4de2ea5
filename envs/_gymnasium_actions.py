"""Gymnasium's action spaces as this package's: how actions of a policy become actions that a simulator takes.

Letters: N actions, one a copy or agent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.environment import ActionSpace, Array, Continuous, Discrete, MultiDiscrete
from srlhpc.objects import UserError


@dataclass(frozen=True)
class ActionCodec:
    """One action space in both languages."""

    space: ActionSpace
    decode: Callable[[Array], Array]
    """`[N, ...]` of `space` to N actions that the simulator takes."""
    idle: Array
    """Any legal action of `space`, for records whose action is ignored."""


def action_codec(space: Any, where: str) -> ActionCodec:
    """The action space for a Gymnasium action space; boxes are scaled from [-1, 1] to their bounds.

    Raises:
        UserError: the space is of another type.
    """
    from gymnasium import spaces

    match space:
        case spaces.Discrete():
            return ActionCodec(Discrete(int(space.n)), _numbers_from(int(space.start)), np.zeros((), np.int64))
        case spaces.MultiDiscrete():
            return _choices(space.nvec, space.start, space.dtype)
        case spaces.MultiBinary():
            return _choices(np.full(space.shape, 2), np.zeros(space.shape, np.int64), space.dtype)
        case spaces.Box():
            return _scaled(space.low, space.high, space.dtype)
    raise UserError(
        f"{where}: action space {type(space).__name__} is not understood; known are Discrete, MultiDiscrete, "
        "MultiBinary and Box; turn it into one of them with a wrapper"
    )


def _numbers_from(start: int) -> Callable[[Array], Array]:
    return lambda actions: actions + start if start else actions


def _choices(choices: NDArray[Any], starts: NDArray[Any], dtype: Any) -> ActionCodec:
    def decode(actions: Array) -> Array:
        decoded: Array = (actions.reshape(-1, *choices.shape) + starts).astype(dtype)
        return decoded

    space = MultiDiscrete(tuple(int(n) for n in choices.reshape(-1)))
    return ActionCodec(space, decode, np.zeros(choices.size, np.int64))


def _scaled(low: NDArray[Any], high: NDArray[Any], dtype: Any) -> ActionCodec:
    bounded = np.isfinite(low) & np.isfinite(high)
    all_bounded = bool(bounded.all())
    bottom, top = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    centre, half = ((top + bottom) / 2).astype(np.float32), ((top - bottom) / 2).astype(np.float32)

    def decode(actions: Array) -> Array:
        shaped = actions.reshape(-1, *low.shape)
        clipped = np.minimum(np.maximum(shaped, -1.0), 1.0)
        if not all_bounded:
            clipped = np.where(bounded, clipped, shaped)
        # In float32 centre + half may round to just above the bound, which simulators that check refuse.
        decoded: Array = np.minimum(np.maximum(clipped * half + centre, low), high).astype(dtype, copy=False)
        return decoded

    return ActionCodec(Continuous(low.size), decode, np.zeros(low.size, np.float32))
