"""Gymnasium's spaces as this package's: how raw observations are written into arrays and actions are read from them.

Letters: E copies, A agents (1 here), D action size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.environment import ActionSpace, Array, ArraySpec, BoolArray, Continuous, Discrete, MultiDiscrete
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
            start = int(space.start)
            decode = (lambda actions: actions + start) if start else _unchanged
            return ActionCodec(Discrete(int(space.n)), decode, np.zeros((), np.int64))
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


def picture(simulator: Any) -> Array | None:
    """What the simulator (or the first of a vector) draws, uint8 `[height, width, 3]`; None without render mode."""
    if getattr(simulator, "render_mode", None) is None:
        return None
    picture = simulator.render()
    return np.asarray(picture[0] if isinstance(picture, list | tuple) else picture, np.uint8)


def split_mask(space: Any) -> tuple[Any, bool]:
    """An observation space without the action mask that PettingZoo's classic games keep in it; whether it had one."""
    from gymnasium import spaces

    if not isinstance(space, spaces.Dict) or "action_mask" not in space.spaces:
        return space, False
    return spaces.Dict({name: part for name, part in space.spaces.items() if name != "action_mask"}), True


def frames_per_second(simulator: Any) -> float | None:
    """Pictures of one second of play, if the simulator (or a vector of them) says so."""
    fps = (simulator.metadata or {}).get("render_fps")
    return float(fps) if isinstance(fps, int | float) and fps > 0 else None
