"""A numpy random generator as an array, so that environments can be saved without pickle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LOW = (1 << 64) - 1


def generator_state(generator: np.random.Generator) -> NDArray[np.uint64]:
    """The state of a PCG64 generator as six words: state and increment (high, low), spare flag, spare word."""
    state = generator.bit_generator.state
    numbers = state["state"]["state"], state["state"]["inc"]
    words = [word for number in numbers for word in (number >> 64, number & _LOW)]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def generator_from_state(words: NDArray[np.uint64]) -> np.random.Generator:
    """A generator that goes on where the saved one was."""
    high, low, increment_high, increment_low, has_spare, spare = (int(word) for word in words)
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": increment_high << 64 | increment_low},
        "has_uint32": has_spare,
        "uinteger": spare,
    }
    return np.random.Generator(bits)
