"""What simulators return, before numpy makes something else of it or copies it to several places."""

from __future__ import annotations

from typing import Any

import numpy as np

from srlhpc.environment import Array

_PLAIN_NUMBERS = frozenset((float, int, np.float64, np.float32))
_PLAIN_FLAGS = frozenset((bool, np.bool_))


class SimulatorError(ValueError):
    """A simulator showed or returned something else than it declared."""


def array_of(value: Any, name: str) -> Array:
    """Whatever numpy makes an array of."""
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise SimulatorError(f"{name} is no array: {type(value).__name__} ({error})") from None


def one_number(value: Any, name: str) -> Any:
    """A reward: a number, or an array of one number."""
    if type(value) in _PLAIN_NUMBERS:
        return value
    array = array_of(value, name)
    if array.size != 1 or array.dtype.kind not in "biuf":
        raise SimulatorError(f"{name} is {_words(value)}, expected one number")
    return array.item()


def one_flag(value: Any, name: str) -> bool:
    """Whether something ended: a bool, 0 or 1, or an array of one of them."""
    if type(value) in _PLAIN_FLAGS:
        return bool(value)
    array = array_of(value, name)
    if array.size != 1 or array.dtype.kind not in "biu" or array.item() not in (0, 1):
        raise SimulatorError(f"{name} is {_words(value)}, expected true or false")
    return bool(array.item())


def column(values: Any, copies: int, kinds: str, name: str) -> Array:
    """One value for each copy, as simulators that step all copies themselves return them."""
    array = array_of(values, name)
    if array.shape != (copies,) or array.dtype.kind not in kinds:
        raise SimulatorError(f"{name} has shape {array.shape} {array.dtype}, expected one value for each of {copies}")
    return array


def _words(value: Any) -> str:
    shape = getattr(value, "shape", ())
    if shape:
        return f"of shape {tuple(shape)} {getattr(value, 'dtype', '')}".rstrip()
    words = " ".join(repr(value).split())
    return f"{words if len(words) <= 60 else words[:57] + '...'} ({type(value).__name__})"
