"""The spaces of a data set of Minari as this package's: which arrays there are, and how they are turned into ours.

They become what `envs.gymnasium` makes of the same spaces. Letters: T records of an episode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from srlhpc.data.layout import Array
from srlhpc.environment import ActionSpace, ArraySpec, Continuous, Discrete, MultiDiscrete
from srlhpc.errors import UserError

Space = Mapping[str, Any]
"""A space of Gymnasium as Minari writes it: `type`, and what belongs to that."""


@dataclass(frozen=True)
class Part:
    """One array of the observations."""

    place: str
    """Where it is in an episode's group."""
    stored: tuple[int, ...]
    """Shape of one entry there."""
    spec: ArraySpec
    """What it becomes."""
    convert: Callable[[Array], Array]
    """`[T + 1, *stored]` to `[T + 1, *spec.shape]`."""


@dataclass(frozen=True)
class Actions:
    """The actions."""

    space: ActionSpace
    stored: tuple[int, ...]
    """Shape of one action."""
    convert: Callable[[Array], Array]
    """`[T, *stored]` to what a policy would have drawn, `[T, ...]` of `space`."""


def observation_parts(space: Space, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Part]]:
    """Every array of an observation space, with the name that `envs.gymnasium` gives it: `obs`, or as `arm.angle`.

    Raises:
        UserError: the space is of another type than Box, Discrete, and Dicts of those.
    """
    if space["type"] == "Dict":
        for key, inner in space["subspaces"].items():
            yield from observation_parts(inner, (*path, key))
        return
    yield ".".join(path) or "obs", _part(space, "/".join(("observations", *path)))


def _part(space: Space, place: str) -> Part:
    match space["type"]:
        case "Box":
            return _box(space, place)
        case "Discrete":
            size, start = int(space["n"]), int(space.get("start", 0))
            one_hot = np.eye(size, dtype=np.float32)
            return Part(place, (), ArraySpec((size,), "float32"), lambda raw: one_hot[raw.astype(np.int64) - start])
    raise UserError(
        f"its observation space has a {space['type']} ({place}); known are Box, Discrete, and Dicts of those"
    )


def _box(space: Space, place: str) -> Part:
    shape = tuple(space["shape"])
    if space["dtype"] != "uint8":
        return Part(place, shape, ArraySpec(shape, "float32"), _as_float)
    if len(shape) == 2:
        return Part(place, shape, ArraySpec((1, *shape), "uint8"), lambda raw: raw[:, None])
    if len(shape) == 3 and shape[2] <= shape[0]:
        height, width, channels = shape
        return Part(place, shape, ArraySpec((channels, height, width), "uint8"), lambda raw: raw.transpose(0, 3, 1, 2))
    is_byte = len(shape) == 3 or (np.all(np.equal(space["low"], 0)) and np.all(np.equal(space["high"], 255)))
    return Part(place, shape, ArraySpec(shape, "uint8" if is_byte else "float32"), _plain if is_byte else _as_float)


def _plain(raw: Array) -> Array:
    return raw


def _as_float(raw: Array) -> Array:
    return raw.astype(np.float32)


def actions_of(space: Space) -> Actions:
    """The actions of a policy that acts in an action space.

    Raises:
        UserError: the space is of another type than Discrete, MultiDiscrete and a Box of floats.
    """
    match space["type"]:
        case "Discrete":
            start = int(space.get("start", 0))
            return Actions(Discrete(int(space["n"])), (), lambda raw: raw.astype(np.int64) - start)
        case "MultiDiscrete":
            choices = np.asarray(space["nvec"], np.int64)
            starts = np.asarray(space.get("start", 0), np.int64)
            multiple = MultiDiscrete(tuple(choices.reshape(-1).tolist()))
            return Actions(multiple, choices.shape, lambda raw: (raw.astype(np.int64) - starts).reshape(len(raw), -1))
        case "Box" if np.dtype(space["dtype"]).kind == "f":
            return _scaled(space)
    what = f"{space['type']} of {space['dtype']}" if "dtype" in space else space["type"]
    raise UserError(f"its action space is a {what}; known are Discrete, MultiDiscrete and Box of floats")


def _scaled(space: Space) -> Actions:
    """Bounds become [-1, 1]; dimensions without bounds are taken as they are (`envs.gymnasium` undoes both)."""
    low, high = (np.asarray(space[name], np.float64).reshape(space["shape"]) for name in ("low", "high"))
    largest = float(np.finfo(space["dtype"]).max)
    bounded = np.all([(abs(bound) < largest) & (abs(bound) <= _LARGEST_BOUND) for bound in (low, high)], axis=0)
    low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    centre = (low + high) / 2
    # Where there is one value only, any number stands for it.
    half = np.where(high > low, (high - low) / 2, 1.0)

    def convert(raw: Array) -> Array:
        unit: Array = ((raw - centre) / half).astype(np.float32).reshape(len(raw), -1)
        return unit

    return Actions(Continuous(low.size), low.shape, convert)


_LARGEST_BOUND = float(np.finfo(np.float32).max) / 2
"""Greater ones are meant as none: spans must fit float32."""
