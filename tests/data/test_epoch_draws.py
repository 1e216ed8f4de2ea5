"""The order in which recorded episodes are gone through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srlhpc.data.epoch_draws import EpochDraws, Fragments


def epoch(draws: EpochDraws, at_once: int = 1) -> list[Fragments]:
    """All draws of one epoch, if `at_once` divides its fragments."""
    return [draws.draw(at_once) for _ in range(draws.fragments // at_once)]


def rows_of(parts: list[Fragments], rows: int) -> list[int]:
    """Rows that the fragments count, in the order of the draws."""
    return [
        (int(start) + step) % rows
        for part in parts
        for start, length in zip(part.starts, part.lengths, strict=True)
        for step in range(int(length))
    ]


@given(rows=st.integers(2, 60), records=st.integers(1, 70), seed=st.integers(0, 5))
def test_every_row_counts_once_in_every_epoch(rows: int, records: int, seed: int) -> None:
    draws = EpochDraws(rows, records, seed)
    for number in range(3):
        assert draws.epoch == number
        assert sorted(rows_of(epoch(draws), rows)) == list(range(rows))


def test_all_fragments_of_an_epoch_but_one_are_whole() -> None:
    lengths = np.concatenate([part.lengths for part in epoch(EpochDraws(50, 8, 1))])
    assert sorted(lengths.tolist()) == [2, 8, 8, 8, 8, 8, 8]


def test_orders_and_cuts_differ_between_epochs_and_seeds_and_follow_from_them() -> None:
    def orders(seed: int) -> list[list[int]]:
        draws = EpochDraws(40, 8, seed)
        return [rows_of(epoch(draws), 40) for _ in range(2)]

    assert orders(1) == orders(1)
    first, second = orders(1)
    assert len({tuple(first), tuple(second), *map(tuple, orders(2))}) == 4
    # The cuts, too: else a record would always be the first of its fragment.
    assert {row % 8 for row in first[::8]} != {row % 8 for row in second[::8]}


def test_a_draw_goes_on_with_the_next_epoch() -> None:
    whole, one_by_one = EpochDraws(10, 3, 4), EpochDraws(10, 3, 4)
    drawn = whole.draw(9)
    singles = [one_by_one.draw(1) for _ in range(9)]
    assert drawn.starts.tolist() == [int(single.starts[0]) for single in singles]
    assert drawn.lengths.tolist() == [int(single.lengths[0]) for single in singles]
    assert whole.epoch == one_by_one.epoch == 2


@pytest.mark.parametrize("before", [0, 1, 3, 4, 10])
def test_draws_go_on_from_a_small_state_as_if_nothing_had_happened(before: int) -> None:
    draws = EpochDraws(10, 3, 4)
    if before:
        draws.draw(before)
    state: dict[str, Any] = draws.save_state()
    assert set(state) == {"seed", "epoch", "position", "rows", "records"}
    expected = draws.draw(11)
    other = EpochDraws(10, 3, seed=0)
    other.load_state(state)
    found = other.draw(11)
    assert (found.starts.tolist(), found.lengths.tolist()) == (expected.starts.tolist(), expected.lengths.tolist())


def test_a_state_of_other_rows_is_refused() -> None:
    state = EpochDraws(13, 3, 0).save_state()
    with pytest.raises(ValueError, match="^13 rows in fragments of 3 were gone through before, not 10 in"):
        EpochDraws(10, 3, 0).load_state(state)


@pytest.mark.parametrize("before", [0, 3, 4, 5, 23])
def test_who_skips_goes_on_as_who_has_drawn(before: int) -> None:
    drawn, skipped = EpochDraws(10, 3, 4), EpochDraws(10, 3, 4)
    for _ in range(before):
        drawn.draw(1)
    skipped.skip(before // 2)
    skipped.skip(before - before // 2)
    assert skipped.save_state() == drawn.save_state()
    assert skipped.draw(3).starts.tolist() == drawn.draw(3).starts.tolist()
