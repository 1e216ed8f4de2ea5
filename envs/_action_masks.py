"""Action masks as simulators give them."""

from __future__ import annotations

from typing import Any

import numpy as np

from srlhpc.environment import ActionSpace, BoolArray, MultiDiscrete


def write_mask(mask: Any, space: ActionSpace, out: BoolArray) -> None:
    """Writes a mask as a simulator gives it; choices without any allowed value (as after the end) become free."""
    if mask is None:
        out[:] = True
        return
    out[:] = np.concatenate([np.ravel(part) for part in mask]) if isinstance(mask, tuple) else np.ravel(mask)
    start = 0
    for choices in space.choices if isinstance(space, MultiDiscrete) else (space.mask_size,):
        part = out[start : start + choices]
        if not part.any():
            part[:] = True
        start += choices


def split_mask(space: Any) -> tuple[Any, bool]:
    """An observation space without the action mask that PettingZoo's classic games keep in it; whether it had one."""
    from gymnasium import spaces

    if not isinstance(space, spaces.Dict) or "action_mask" not in space.spaces:
        return space, False
    return spaces.Dict({name: part for name, part in space.spaces.items() if name != "action_mask"}), True
