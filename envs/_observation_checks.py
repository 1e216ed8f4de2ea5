"""Whether what a simulator shows is what its observation space says, before numpy copies, wraps or cuts it.

Shape and dtype are looked at in every observation. Values are where a wrong one would be written as another (300 into
bytes, a choice that there is not); others are in the first observations, then now and then.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from envs._returned_values import SimulatorError, array_of, as_float32, first_of
from srlhpc.environment import Array

log = logging.getLogger(__name__)

LOOKS_AT_FIRST = 256
LOOKS_EVERY = 64


class ArrayCheck:
    """Checks the observations of a Box, MultiBinary or MultiDiscrete space.

    Floats outside of their bounds are reported once, since rounding and careless bounds are common and nothing depends
    on them; whether they are finite is checked later, with all other numbers of a step.

    Args:
        space: of one observation, or of those of several environments.
        name: what is observed, in messages.
        dtype: of the array that the observation is written to.
        always: whether wrong values would be written as others, whatever their dtype.
    """

    def __init__(self, space: Any, name: str, dtype: str, *, always: bool = False) -> None:
        self._space, self._name, self._always = _words(space), name, always
        self._shape = tuple(space.shape)
        self._low, self._high = _bounds(space)
        self._kinds = "biuf" if space.dtype.kind == "f" else "biu"
        self._dtype = space.dtype
        self._is_exact = space.dtype.kind != "f"
        self._target = np.dtype(dtype)
        self._dtypes = {space.dtype}
        """Whose values need no look at every step."""
        self._has_bounds = not (np.isinf(self._low).all() and np.isinf(self._high).all())
        if self._is_exact and space.dtype == self._target:
            info = np.iinfo(self._target)
            self._has_bounds = bool((self._low > info.min).any() or (self._high < info.max).any())
        self._seen = 0
        self._reported = False

    def __call__(self, raw: Any) -> Array:
        """The observation as an array. Raises SimulatorError if it is not in the space."""
        array: Array = raw if type(raw) is np.ndarray else array_of(raw, self._name)
        if array.shape != self._shape:
            self._refuse(array, "is of another shape")
        looks = self._always
        if array.dtype not in self._dtypes:
            looks |= self._look_at_dtype(array)
        self._seen += 1
        if looks or (self._has_bounds and (self._seen <= LOOKS_AT_FIRST or self._seen % LOOKS_EVERY == 0)):
            self._look(array)
        return as_float32(array, self._name)

    def _look_at_dtype(self, array: Array) -> bool:
        """Whether this dtype holds values that the target does not."""
        if array.dtype.kind not in self._kinds:
            self._refuse(array, "is of another kind of number")
        if np.can_cast(array.dtype, self._target, "same_kind" if self._target.kind == "f" else "safe"):
            self._dtypes.add(array.dtype)
            return False
        return True

    def _look(self, array: Array) -> None:
        if not array.size:
            return
        outside = (array < self._low) | (array > self._high)
        if not outside.any():
            return
        where = f"{self._name} {first_of(array, outside)}, outside of its space {self._space}"
        if self._is_exact:
            raise SimulatorError(f"{where}; correct the environment or the bounds of its space")
        if not self._reported:
            log.warning("%s; it is taken as it is, and not reported again", where)
        self._reported = True

    def _refuse(self, array: Array, reason: str) -> None:
        raise SimulatorError(
            f"{self._name} {reason}: {array.shape} {array.dtype}, expected {self._shape} {self._dtype} of its "
            f"space {self._space}; correct the environment or its space"
        )


def _bounds(space: Any) -> tuple[Array, Array]:
    from gymnasium import spaces

    match space:
        case spaces.Box():
            return space.low, space.high
        case spaces.MultiDiscrete():
            return space.start, space.start + (space.nvec - 1)
    return np.zeros(space.shape, space.dtype), np.ones(space.shape, space.dtype)


def _words(space: Any) -> str:
    """A space in one line that can be read."""
    words = " ".join(str(space).split())
    return words if len(words) <= 120 else f"{words[:117]}..."


class ChoiceCheck:
    """Checks the observations of a Discrete space."""

    def __init__(self, space: Any, name: str) -> None:
        self._space, self._name = _words(space), name
        self._low, self._high = int(space.start), int(space.start) + int(space.n)

    def __call__(self, raw: Any) -> int:
        if isinstance(raw, np.ndarray):
            raw = array_of(raw, self._name)
        try:
            number = operator.index(raw)
        except TypeError:
            shown = f"shape {raw.shape} {raw.dtype}" if isinstance(raw, np.ndarray) else f"{type(raw).__name__} {raw!r}"
            raise SimulatorError(
                f"{self._name} is no integer: {shown}; its space {self._space} is of single integers"
            ) from None
        if not self._low <= number < self._high:
            raise SimulatorError(f"{self._name} is {number}, which is not in its space {self._space}")
        return number


def missing_part(raw: Any, path: Sequence[Any]) -> SimulatorError:
    """What is wrong with a raw observation that has nothing at `path`."""
    for step in path[:-1]:
        raw = raw[step]
    keys = getattr(raw, "keys", None)
    found = f"only {', '.join(map(repr, keys())) or 'nothing'}" if keys else f"{type(raw).__name__}"
    name = ".".join(map(str, path))
    return SimulatorError(f"observation '{name}' of its space is missing: where it should be is {found}")
