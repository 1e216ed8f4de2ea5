"""Gymnasium's observation spaces as this package's: how raw observations are written into arrays."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs._choices import require_few_choices
from envs._observation_checks import ArrayCheck, ChoiceCheck, missing_part
from envs._returned_values import SimulatorError
from srlhpc.environment import Array, ArraySpec
from srlhpc.errors import UserError

log = logging.getLogger(__name__)

REMEDY = "turn it into one of them with a wrapper"
_AS_NUMBERS = "show it as a Box of numbers, such as digits, in the environment or by a wrapper of yours"


@dataclass(frozen=True)
class ObservationKey:
    """One array of an observation."""

    spec: ArraySpec
    encode: Callable[[Any], Any]
    """Turns the raw observation into an array of the shape of `spec`; SimulatorError if it is not in its space."""
    is_plain: bool = False
    """Whether `encode` only casts, so that a whole batch can be assigned at once."""
    path: tuple[Any, ...] = ()
    """Keys and places that lead to it in the raw observation; empty where that is the array itself."""

    def of(self, raw: Any) -> Any:
        """Its part of a raw observation, encoded."""
        part = raw
        for depth, step in enumerate(self.path):
            try:
                part = part[step]
            except (KeyError, IndexError, TypeError):
                raise missing_part(raw, self.path[: depth + 1]) from None
        return self.encode(part)

    def of_batch(self, space: Any, name: str) -> ObservationKey:
        """The same of a batch of raw observations in `space`, whose arrays have one more axis in front."""
        part = space
        for step in self.path:
            part = part.spaces[step]
        what = f"observation '{name}'" if self.path else "the observation"
        return replace(self, encode=ArrayCheck(part, f"{what} of all environments", self.spec.dtype))


@dataclass(frozen=True)
class ObservationKeys:
    """All arrays of an observation."""

    keys: Mapping[str, ObservationKey]

    @property
    def specs(self) -> dict[str, ArraySpec]:
        return {name: key.spec for name, key in self.keys.items()}

    @property
    def are_plain(self) -> bool:
        """Whether a whole batch of raw observations can be assigned to the arrays."""
        return all(key.is_plain for key in self.keys.values())

    def of_batch(self, space: Any) -> ObservationKeys:
        """The same keys where all are plain, of a batch of observations in `space`."""
        return ObservationKeys({name: key.of_batch(space, name) for name, key in self.keys.items()})

    def write(self, raw: Any, arrays: Mapping[str, Array], index: Any) -> None:
        """Writes one raw observation to `arrays[key][index]`."""
        for name, key in self.keys.items():
            arrays[name][index] = key.of(raw)

    def check(self, raw: Any, where: str) -> None:
        """Raises UserError if the first observation is not in its space."""
        try:
            for key in self.keys.values():
                key.of(raw)
        except SimulatorError as error:
            raise UserError(f"{where}, reset: {error}") from None


def observation_keys(space: Any, where: str, remedy: str = REMEDY) -> ObservationKeys:
    """The arrays for a Gymnasium observation space.

    float, integer and bool boxes and MultiBinary: float32; uint8 images `[H, W, C]` or `[H, W]`: uint8 `[C, H, W]`
    (images whose first axis is the smallest are taken as `[C, H, W]` already); other uint8 boxes from 0 to 255: uint8,
    which networks divide by 255 as they do images; Discrete and MultiDiscrete: one-hot float32; Dict and Tuple, within
    each other too: one key each, as `arm.angle` or `1.image`. Text in them is left out, which is logged once.

    Args:
        space: of one agent.
        where: what messages call the environment.
        remedy: what messages advise where a space is of another type.

    Raises:
        UserError: the space is of another type, or there are no arrays in it.
    """
    parts, texts = _parts(space)
    keys: dict[str, ObservationKey] = {}
    for path, part in parts.items():
        name = _name(path)
        if name in keys:
            raise UserError(
                f"{where}: two observations would be called '{name}', {_place(keys[name].path)} and {_place(path)}; "
                "rename one, in the environment or by a wrapper of yours"
            )
        key = _observation_key(part, where, f"observation '{name}'" if path else "the observation", remedy)
        keys[name] = replace(key, path=path)
    if not any(math.prod(key.spec.shape) for key in keys.values()):
        advice = f"; {remedy}" if texts else ""
        raise UserError(f"{where}: its observation space, {space}, has no numbers to learn from{advice}")
    if texts:
        _say_what_is_left_out(where, ", ".join(f"'{_name(path)}'" for path in texts))
    return ObservationKeys(keys)


def _name(path: tuple[Any, ...]) -> str:
    return ".".join(str(step) for step in path) or "obs"


def _place(path: tuple[Any, ...]) -> str:
    return "".join(f"[{step!r}]" for step in path)


def _parts(space: Any, path: tuple[Any, ...] = ()) -> tuple[dict[tuple[Any, ...], Any], list[tuple[Any, ...]]]:
    """What a space consists of, by where it is, and where text is inside it."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict | spaces.Tuple):
        inner = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        parts: dict[tuple[Any, ...], Any] = {}
        texts: list[tuple[Any, ...]] = []
        for step, part in inner:
            more, more_texts = _parts(part, (*path, step))
            parts |= more
            texts += more_texts
        return parts, texts
    return ({}, [path]) if path and _is_text(space) else ({path: space}, [])


def _is_text(space: Any) -> bool:
    """Whether its values are strings; environments have classes of their own for that."""
    from gymnasium import spaces

    if isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return False
    try:
        return isinstance(space, spaces.Text) or isinstance(space.sample(), str)
    except NotImplementedError:
        return False


@cache
def _say_what_is_left_out(where: str, names: str) -> None:
    log.warning("%s: observation %s is text, which networks cannot read: it is left out", where, names)


def _observation_key(space: Any, where: str, name: str, remedy: str) -> ObservationKey:
    from gymnasium import spaces

    match space:
        case spaces.Box() if space.dtype == np.uint8 and len(space.shape) in (2, 3):
            return _image(space, name)
        case spaces.Box() if space.dtype == np.uint8 and (space.low == 0).all() and (space.high == 255).all():
            return _plain(space, name, "uint8")
        case spaces.Box() | spaces.MultiBinary():
            return _plain(space, name, "float32")
        case spaces.Discrete():
            require_few_choices(int(space.n), f"{where}, {name}: its space Discrete", _AS_NUMBERS)
            return _one_hot(np.array([space.n]), np.array([space.start]), ChoiceCheck(space, name))
        case spaces.MultiDiscrete():
            require_few_choices(
                sum(space.nvec.reshape(-1).tolist()), f"{where}, {name}: its space MultiDiscrete", _AS_NUMBERS
            )
            check = ArrayCheck(space, name, "float32", always=True)
            return _one_hot(space.nvec.reshape(-1), space.start.reshape(-1), check)
    raise UserError(
        f"{where}, {name}: observation space {type(space).__name__} is not understood; known are Box, Discrete, "
        f"MultiDiscrete, MultiBinary, and Dicts and Tuples of those; {remedy}"
    )


def _plain(space: Any, name: str, dtype: str) -> ObservationKey:
    return ObservationKey(ArraySpec(tuple(space.shape), dtype), ArrayCheck(space, name, dtype), is_plain=True)


def _image(space: Any, name: str) -> ObservationKey:
    check = ArrayCheck(space, name, "uint8")
    if len(space.shape) == 2:
        return ObservationKey(ArraySpec((1, *space.shape), "uint8"), lambda raw: check(raw)[None])
    height, width, channels = space.shape
    if channels > height:
        return ObservationKey(ArraySpec(space.shape, "uint8"), check, is_plain=True)
    return ObservationKey(ArraySpec((channels, height, width), "uint8"), lambda raw: check(raw).transpose(2, 0, 1))


def _one_hot(choices: NDArray[Any], starts: NDArray[Any], check: Callable[[Any], Any]) -> ObservationKey:
    size = int(choices.sum())
    offsets = np.concatenate([[0], np.cumsum(choices)[:-1]]) - starts

    def encode(raw: Any) -> Array:
        encoded = np.zeros(size, np.float32)
        encoded[np.ravel(check(raw)) + offsets] = 1.0
        return encoded

    return ObservationKey(ArraySpec((size,), "float32"), encode)
