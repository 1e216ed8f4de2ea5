"""The pace of replay."""

from __future__ import annotations

import random

import pytest

from srlhpc.roles.replaying.rate import Rate

BLOCK, BATCH = 32, 64


def rate(samples_per_insert: float = 8.0, tolerance: float = 1000.0, start_steps: float = 0.0) -> Rate:
    made = Rate(samples_per_insert=samples_per_insert, tolerance=tolerance, start_steps=start_steps)
    made.begin(0, 0)
    return made


def test_nothing_is_drawn_and_everything_comes_in_until_enough_steps_are_there() -> None:
    fills = rate(start_steps=100.0)
    fills.begin(99, 10_000)
    assert (fills.is_running, fills.may_draw(1, 10_000), fills.may_insert(10**9, 10_000)) == (False, False, True)
    fills.begin(100, 10_000)
    assert (fills.is_running, fills.may_draw(BATCH, 10_000)) == (True, True)


def test_what_filled_the_store_is_not_counted() -> None:
    fills = rate(start_steps=100.0)
    fills.begin(100, 10_000)
    fills.begin(200, 20_000)
    assert [fills.may_insert(records, 10_000) for records in (125, 126)] == [True, False]
    assert [fills.may_draw(records, 10_000) for records in (1000, 1001)] == [True, False]


def test_each_side_may_be_ahead_by_the_tolerance() -> None:
    paced = rate()
    paced.drawn = 8 * 500
    assert [paced.may_draw(records, 500) for records in (1000, 1001)] == [True, False]
    assert [paced.may_insert(records, 500) for records in (125, 126)] == [True, False]


@pytest.mark.parametrize("samples_per_insert", [0.38, 1.3, 8.0, 256.0])
@pytest.mark.parametrize("more", [0.0, 1.0, 5000.0])
def test_both_sides_never_wait_and_neither_is_ahead_by_more_than_the_tolerance(
    samples_per_insert: float, more: float
) -> None:
    tolerance = (BATCH + samples_per_insert * BLOCK) / 2 + more
    paced, inserted, chance = rate(samples_per_insert, tolerance), 0, random.Random(1)
    for _ in range(2000):
        draws, inserts = paced.may_draw(BATCH, inserted), paced.may_insert(BLOCK, inserted)
        assert draws or inserts
        if draws and not (inserts and chance.random() < 0.5):
            paced.drawn += BATCH
        else:
            inserted += BLOCK
        assert abs(paced.drawn - samples_per_insert * inserted) <= tolerance + 1e-6


def test_both_sides_wait_for_ever_below_the_least_tolerance() -> None:
    paced = rate(8.0, (BATCH + 8.0 * BLOCK) / 2 - 1)
    paced.drawn = 128
    assert (paced.may_draw(BATCH, 0), paced.may_insert(BLOCK, 0)) == (False, True)
    paced.drawn = 96
    assert (paced.may_draw(BATCH, 0), paced.may_insert(BLOCK, 0)) == (False, False)


def test_counts_are_restored() -> None:
    fills = rate(start_steps=100.0)
    fills.begin(100, 10_000)
    fills.drawn = 640
    other = rate(start_steps=100.0)
    other.load_state(fills.save_state())
    assert (other.is_running, other.drawn, other.may_draw(361, 10_000)) == (True, 640, False)
