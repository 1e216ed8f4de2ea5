"""The specs of a `dm_env.Environment` as Gymnasium's spaces, which the adapters read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from srlhpc.environment import Array
from srlhpc.errors import UserError

_NO_BOUND = 1e10
"""MuJoCo's mjMAXVAL, which it gives for bounds that there are not."""


def observation_space(spec: Any, where: str) -> Any:
    """The space for an observation spec: dicts, lists and tuples of arrays, within each other too.

    Raises:
        UserError: a part of it is no spec.
    """
    from dm_env import specs
    from gymnasium import spaces

    match spec:
        case Mapping():
            return spaces.Dict({key: observation_space(part, where) for key, part in spec.items()})
        case list() | tuple():
            return spaces.Tuple([observation_space(part, where) for part in spec])
        case specs.StringArray():
            return spaces.Text(1)
        case specs.DiscreteArray():
            return spaces.Discrete(int(spec.num_values))
        case specs.Array() if spec.dtype.kind in "biuf":
            return _box(spec)
    raise UserError(
        f"{where}: its observation_spec has {spec!r}, which is not understood; known are Array, BoundedArray, "
        "DiscreteArray and StringArray of dm_env.specs, and dicts, lists and tuples of those"
    )


def action_space(spec: Any) -> Any:
    """The space for an action spec. Bounded integers are choices; specs that are no arrays stay what they are."""
    from dm_env import specs
    from gymnasium import spaces

    if isinstance(spec, specs.BoundedArray) and spec.dtype.kind in "iu":
        low, high = _bounds(spec)
        if not spec.shape:
            return spaces.Discrete(int(high) - int(low) + 1, start=int(low))
        return spaces.MultiDiscrete(high - low + 1, start=low)
    return _box(spec) if isinstance(spec, specs.Array) and spec.dtype.kind == "f" else spec


def _box(spec: Any) -> Any:
    from gymnasium import spaces

    if spec.dtype.kind == "b":
        return spaces.Box(0, 1, spec.shape, np.int8)
    low, high = _bounds(spec)
    return spaces.Box(low.astype(spec.dtype), high.astype(spec.dtype), dtype=spec.dtype.type)


def _bounds(spec: Any) -> tuple[Array, Array]:
    """`[*shape]`: the least and the greatest values, infinite where floats have none."""
    if spec.dtype.kind in "iu":
        low, high = np.iinfo(spec.dtype).min, np.iinfo(spec.dtype).max
        least, greatest = getattr(spec, "minimum", low), getattr(spec, "maximum", high)
    else:
        least, greatest = getattr(spec, "minimum", -np.inf), getattr(spec, "maximum", np.inf)
        least = np.where(np.abs(least) < _NO_BOUND, least, -np.inf)
        greatest = np.where(np.abs(greatest) < _NO_BOUND, greatest, np.inf)
    return np.broadcast_to(least, spec.shape), np.broadcast_to(greatest, spec.shape)
