from __future__ import annotations

import numpy as np
import pytest

from envs._generators import (
    generator_from_state,
    generator_state,
    legacy_generator_words,
    load_legacy_generator,
)


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


@pytest.mark.parametrize("draws", [0, 1, 2, 700])
def test_restored_legacy_generator_goes_on_with_the_same_numbers(draws: int) -> None:
    generator, restored = np.random.RandomState(5), np.random.RandomState(6)
    # Normal numbers are drawn in pairs, so the state has a spare one after an odd number of them.
    generator.standard_normal(draws)
    words = legacy_generator_words(generator)
    load_legacy_generator(restored, words)
    assert (words.shape, words.dtype) == ((628,), np.uint32)
    assert restored.standard_normal(3).tolist() == generator.standard_normal(3).tolist()
    assert restored.bytes(5) == generator.bytes(5)


def test_words_without_a_spare_number_are_taken_from_earlier_checkpoints() -> None:
    generator, restored = np.random.RandomState(5), np.random.RandomState(6)
    restored.standard_normal(1)
    load_legacy_generator(restored, legacy_generator_words(generator)[:625])
    assert restored.standard_normal(3).tolist() == generator.standard_normal(3).tolist()
