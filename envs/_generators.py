"""Random generators of numpy as arrays, so that environments can be saved without pickle."""

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


def legacy_generator_words(random: np.random.RandomState) -> NDArray[np.uint32]:
    """The state of a `RandomState` as words `[628]`: 624 of MT19937, the place in them, a spare normal number.

    Those of the spare number are whether there is one, and its two halves.
    """
    state = random.get_state(legacy=False)
    spare = np.array([state["gauss"]]).view(np.uint32)
    return np.concatenate([state["state"]["key"], [state["state"]["pos"], state["has_gauss"]], spare]).astype(np.uint32)


def load_legacy_generator(random: np.random.RandomState, words: NDArray[np.uint32]) -> None:
    """Lets a `RandomState` go on where the saved one was; the last three words may be missing, where none is spare."""
    key, (place, *spare) = words[:624].astype(np.uint32), words[624:].astype(np.uint32)
    has_spare, number = (bool(spare[0]), np.array(spare[1:]).view(np.float64).item()) if spare else (False, 0.0)
    random.set_state(
        {
            "bit_generator": "MT19937",
            "state": {"key": key, "pos": int(place)},
            "has_gauss": int(has_spare),
            "gauss": number,
        }
    )
