"""Action masks as simulators give them: under `action_mask`, in a Dict observation or in `info`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from envs._returned_values import SimulatorError, array_of
from srlhpc.environment import ActionSpace, Array, BoolArray, Continuous, MultiDiscrete
from srlhpc.errors import UserError, counted

MASK = "action_mask"
ROOM_FOR_LATER = 256
"""Choices for which a mask is always kept; some environments give the first one with a step."""


def split_mask(space: Any, actions: ActionSpace, where: str) -> tuple[Any, bool]:
    """An observation space without the action mask that a Dict may hold; whether it held one.

    Raises:
        UserError: the mask is not one of these actions.
    """
    from gymnasium import spaces

    if not holds_mask(space):
        return space, False
    size = sum(math.prod(part.shape) for part in _leaves(space.spaces[MASK]))
    if isinstance(actions, Continuous) or size != actions.mask_size:
        raise UserError(
            f"{where}: '{MASK}' of its observation space is {space.spaces[MASK]}, which is no mask of its actions "
            f"({_wanted(actions)}); correct its size, or give it another name if it is an ordinary observation"
        )
    return spaces.Dict({name: part for name, part in space.spaces.items() if name != MASK}), True


def holds_mask(space: Any) -> bool:
    """Whether an observation space is a Dict with an action mask in it."""
    from gymnasium import spaces

    return isinstance(space, spaces.Dict) and MASK in space.spaces


def _leaves(space: Any) -> list[Any]:
    from gymnasium import spaces

    return [leaf for part in space for leaf in _leaves(part)] if isinstance(space, spaces.Tuple) else [space]


def write_mask(mask: Any, space: ActionSpace, out: BoolArray, *, acts: bool) -> None:
    """Writes a mask; without one everything is allowed. One that allows nothing is as none where no agent acts.

    Raises:
        SimulatorError: it is no mask of these actions, or allows nothing while the agent acts.
    """
    if mask is None:
        out[:] = True
        return
    flat = _flat(mask, space)
    if flat.dtype != np.bool_ and (flat.dtype.kind not in "iuf" or not ((flat == 0) | (flat == 1)).all()):
        raise SimulatorError(f"the action mask holds something else than 0 and 1: {flat.tolist()}")
    out[:] = flat
    start = 0
    for part, choices in enumerate(_choices(space)):
        allowed = out[start : start + choices]
        if not allowed.any():
            if acts:
                which = f" of part {part}" if isinstance(space, MultiDiscrete) else ""
                raise SimulatorError(f"the action mask allows no choice{which}, but the agent must act")
            allowed[:] = True
        start += choices


def _flat(mask: Any, space: ActionSpace) -> Array:
    choices = _choices(space)
    if isinstance(space, MultiDiscrete) and _has_parts(mask):
        return np.concatenate(_parts(mask, choices))
    array = array_of(mask, "the action mask")
    if array.shape != (sum(choices),):
        raise SimulatorError(f"the action mask has shape {array.shape}, expected {_wanted(space)}")
    return array


def _has_parts(mask: Any) -> bool:
    """Whether it holds tuples, lists or arrays, or rows."""
    if isinstance(mask, tuple | list):
        return any(isinstance(part, tuple | list) or getattr(part, "ndim", 0) for part in mask)
    return getattr(mask, "ndim", 0) > 1


def _parts(mask: Any, choices: tuple[int, ...]) -> list[Array]:
    """A mask for each part of an action, from the tuples (in tuples) that Gymnasium makes of them."""
    arrays = list(_inner(mask))
    if [array.shape for array in arrays] != [(size,) for size in choices]:
        found = ", ".join(str(array.shape) for array in arrays)
        raise SimulatorError(f"the action mask has parts of shapes {found}, expected sizes {list(choices)}")
    return arrays


def _inner(mask: Any) -> Iterator[Array]:
    if _has_parts(mask):
        for part in mask:
            yield from _inner(part)
    else:
        yield array_of(mask, "a part of the action mask")


def _choices(space: ActionSpace) -> tuple[int, ...]:
    return space.choices if isinstance(space, MultiDiscrete) else (space.mask_size,)


def _wanted(space: ActionSpace) -> str:
    if isinstance(space, Continuous):
        return "boxes have no masks"
    parts = f", for the parts {list(space.choices)}" if isinstance(space, MultiDiscrete) else ""
    return f"{counted(space.mask_size, 'number')}, 0 or 1{parts}"


def has_masks(infos: Iterable[Mapping[str, Any] | None], actions: ActionSpace, where: str) -> bool:
    """Whether there is room for masks: where the reset gives one, and where they are small, in case a step does.

    Raises:
        UserError: there is a mask of actions that cannot be masked.
    """
    is_given = any(MASK in (info or ()) for info in infos)
    if is_given and isinstance(actions, Continuous):
        raise UserError(f"{where}: info has an '{MASK}', but its actions are a Box, which cannot be masked")
    return is_given or 0 < actions.mask_size <= ROOM_FOR_LATER


def unexpected_mask() -> SimulatorError:
    """A mask came that was not announced by the first reset, so that there is no room for it."""
    return SimulatorError(
        f"info has an '{MASK}' now, but at the first reset it had none: give one from the reset on, all ones where "
        "everything is allowed (actions of a Box cannot be masked)"
    )
