from __future__ import annotations

import numpy as np
import pytest

from envs._generators import generator_from_state, generator_state


@pytest.mark.parametrize("draws", [0, 1, 2])
def test_restored_generator_goes_on_with_the_same_numbers(draws: int) -> None:
    generator = np.random.default_rng(5)
    # Each draw takes half a word, so the state has a spare half after an odd number of them.
    generator.integers(2**31, size=draws, dtype=np.int32)
    restored = generator_from_state(generator_state(generator))
    assert (
        restored.integers(2**31, size=3, dtype=np.int32).tolist()
        == generator.integers(2**31, size=3, dtype=np.int32).tolist()
    )
    assert restored.random(3).tolist() == generator.random(3).tolist()


def test_state_is_an_array_of_six_words() -> None:
    state = generator_state(np.random.default_rng(5))
    assert (state.shape, state.dtype) == ((6,), np.uint64)
