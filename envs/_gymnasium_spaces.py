"""Gymnasium's observation spaces as this package's: how raw observations are written into arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.environment import Array, ArraySpec
from srlhpc.objects import UserError


@dataclass(frozen=True)
class ObservationKey:
    """One array of an observation."""

    spec: ArraySpec
    encode: Callable[[Any], Any]
    """Turns the raw observation into something that can be assigned to an array of `spec`."""
    is_plain: bool = False
    """Whether `encode` only casts, so that a whole batch can be assigned at once."""


@dataclass(frozen=True)
class ObservationKeys:
    """All arrays of an observation."""

    keys: Mapping[str, ObservationKey]
    is_dict: bool
    """Whether the raw observation is a mapping with these keys; else it is the value of the only key, `obs`."""

    @property
    def specs(self) -> dict[str, ArraySpec]:
        return {name: key.spec for name, key in self.keys.items()}

    def write(self, raw: Any, arrays: Mapping[str, Array], index: Any) -> None:
        """Writes one raw observation to `arrays[key][index]`."""
        if not self.is_dict:
            arrays["obs"][index] = self.keys["obs"].encode(raw)
            return
        for name, key in self.keys.items():
            arrays[name][index] = key.encode(raw[name])


def observation_keys(space: Any, where: str) -> ObservationKeys:
    """The arrays for a Gymnasium observation space.

    float, integer and bool boxes and MultiBinary: float32; uint8 images `[H, W, C]` or `[H, W]`: uint8 `[C, H, W]`
    (images whose first axis is the smallest are taken as `[C, H, W]` already); Discrete and MultiDiscrete: one-hot
    float32; Dict: one key each.

    Raises:
        UserError: the space is of another type, or a Dict within a Dict.
    """
    from gymnasium import spaces

    if not isinstance(space, spaces.Dict):
        return ObservationKeys({"obs": _observation_key(space, where)}, is_dict=False)
    for name, part in space.spaces.items():
        if isinstance(part, spaces.Dict | spaces.Tuple):
            raise UserError(
                f"{where}: observation '{name}' is a {type(part).__name__} inside a Dict; only one level is "
                "understood: flatten it with a wrapper (gymnasium.wrappers.FlattenObservation)"
            )
    keys = {name: _observation_key(part, f"{where}, observation '{name}'") for name, part in space.spaces.items()}
    return ObservationKeys(keys, is_dict=True)


def _observation_key(space: Any, where: str) -> ObservationKey:
    from gymnasium import spaces

    match space:
        case spaces.Box() if space.dtype == np.uint8 and len(space.shape) in (2, 3):
            return _image(space.shape)
        case spaces.Box() | spaces.MultiBinary():
            return ObservationKey(ArraySpec(tuple(space.shape), "float32"), _unchanged, is_plain=True)
        case spaces.Discrete():
            return _one_hot(np.array([space.n]), np.array([space.start]))
        case spaces.MultiDiscrete():
            return _one_hot(space.nvec.reshape(-1), space.start.reshape(-1))
    raise UserError(
        f"{where}: observation space {type(space).__name__} is not understood; known are Box, Discrete, MultiDiscrete, "
        "MultiBinary and a Dict of those; turn it into one of them with a wrapper"
    )


def _unchanged(raw: Any) -> Any:
    return raw


def _image(shape: tuple[int, ...]) -> ObservationKey:
    if len(shape) == 2:
        return ObservationKey(ArraySpec((1, *shape), "uint8"), _unchanged)
    height, width, channels = shape
    if channels > height:
        return ObservationKey(ArraySpec(shape, "uint8"), _unchanged)
    return ObservationKey(ArraySpec((channels, height, width), "uint8"), lambda raw: raw.transpose(2, 0, 1))


def _one_hot(choices: NDArray[Any], starts: NDArray[Any]) -> ObservationKey:
    size = int(choices.sum())
    offsets = np.concatenate([[0], np.cumsum(choices)[:-1]]) - starts

    def encode(raw: Any) -> Array:
        encoded = np.zeros(size, np.float32)
        encoded[np.ravel(raw) + offsets] = 1.0
        return encoded

    return ObservationKey(ArraySpec((size,), "float32"), encode)


def picture(simulator: Any) -> Array | None:
    """What the simulator (or the first of a vector) draws, uint8 `[height, width, 3]`; None without render mode."""
    if getattr(simulator, "render_mode", None) is None:
        return None
    picture = simulator.render()
    return np.asarray(picture[0] if isinstance(picture, list | tuple) else picture, np.uint8)


def frames_per_second(simulator: Any) -> float | None:
    """Pictures of one second of play, if the simulator (or a vector of them) says so."""
    fps = (simulator.metadata or {}).get("render_fps")
    return float(fps) if isinstance(fps, int | float) and fps > 0 else None
