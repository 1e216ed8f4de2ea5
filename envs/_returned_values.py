"""What simulators return, before numpy makes something else of it or copies it to several places."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from srlhpc.environment import Array, BoolArray

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_PLAIN_NUMBERS = frozenset((float, int, np.float64, np.float32))
_PLAIN_FLAGS = frozenset((bool, np.bool_))


class SimulatorError(ValueError):
    """A simulator showed or returned something else than it declared."""


def array_of(value: Any, name: str) -> Array:
    """Whatever numpy makes an array of, but for masked arrays, whose masks would be forgotten."""
    if _is_masked(value) or (isinstance(value, list | tuple) and any(map(_is_masked, value))):
        raise SimulatorError(
            f"{name} is a masked array, and the numbers under its mask would be learned from: return a plain array, as "
            "masked.filled(0.0) gives, and whatever tells what is missing as another observation"
        )
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise SimulatorError(f"{name} is no array: {type(value).__name__} ({error})") from None


def _is_masked(value: Any) -> bool:
    return isinstance(value, np.ma.MaskedArray)


def as_float32(array: Array, name: str) -> Array:
    """Wider floats as float32. Raises SimulatorError if a finite one does not fit; nan and inf are checked later."""
    if array.dtype.kind != "f" or array.dtype.itemsize <= 4:
        return array
    try:
        with np.errstate(over="raise"):
            return array.astype(np.float32)
    except FloatingPointError:
        wrong = np.isfinite(array) & (np.abs(array) > _FLOAT32_MAX)
        raise _overflow(f"{name} {first_of(array, wrong)}") from None


def _overflow(what: str) -> SimulatorError:
    return SimulatorError(
        f"{what}, too large for float32, which ends at {_FLOAT32_MAX:.2g}: scale or clip it in the environment"
    )


def first_of(array: Array, chosen: BoolArray) -> str:
    """The first number that is chosen, and its place, as what a sentence says of the array."""
    place = tuple(int(i) for i in np.argwhere(chosen)[0])
    return f"has {array[place]} at {list(place)}" if place else f"is {array[place]}"


def checked_info(info: Any) -> Mapping[str, Any]:
    """What a reset or step tells besides."""
    if type(info) is dict or isinstance(info, Mapping):
        return info
    raise SimulatorError(
        f"its info is {_words(info)}, expected a mapping, as Gymnasium's reset and step return it; {{}} says nothing"
    )


def one_number(value: Any, name: str) -> Any:
    """A reward: a number, or an array of one number."""
    if type(value) not in _PLAIN_NUMBERS:
        array = array_of(value, name)
        if array.size != 1 or array.dtype.kind not in "biuf":
            raise SimulatorError(f"{name} is {_words(value)}, expected one number")
        value = array.item()
    if _FLOAT32_MAX < abs(value) < math.inf:
        raise _overflow(f"{name} is {_words(value) if isinstance(value, float) else 'a whole number'}")
    return value


def one_flag(value: Any, name: str) -> bool:
    """Whether something ended: a bool, 0 or 1, or an array of one of them."""
    if type(value) in _PLAIN_FLAGS:
        return bool(value)
    array = array_of(value, name)
    if array.size != 1 or array.dtype.kind not in "biu" or array.item() not in (0, 1):
        raise SimulatorError(f"{name} is {_words(value)}, expected true or false")
    return bool(array.item())


def column(values: Any, num_environments: int, kinds: str, name: str) -> Array:
    """One value for each environment, as simulators that step all environments themselves return them."""
    array = array_of(values, name)
    if array.shape != (num_environments,) or array.dtype.kind not in kinds:
        raise SimulatorError(
            f"{name} has shape {array.shape} {array.dtype}, expected one value for each of {num_environments}"
        )
    return as_float32(array, name)


def _words(value: Any) -> str:
    shape = getattr(value, "shape", ())
    if shape:
        return f"of shape {tuple(shape)} {getattr(value, 'dtype', '')}".rstrip()
    words = " ".join(repr(value).split())
    return f"{words if len(words) <= 60 else words[:57] + '...'} ({type(value).__name__})"
