"""Sizes of what is sent, and what the ring's first measurement predicts."""

from __future__ import annotations

import pytest

from srlhpc.bench.inference import groups_of
from srlhpc.bench.ring import plateau_ring
from srlhpc.bench.streams import block_of, size_text


@pytest.mark.parametrize("size", [8 << 10, 256 << 10, 2 << 20, 16 << 20])
def test_block_has_the_size_that_was_asked_for(size: int) -> None:
    assert abs(block_of(size).size_bytes - size) <= 64


@pytest.mark.parametrize(("size", "text"), [(256, "256 B"), (28 << 10, "28 KiB"), (2 << 20, "2 MiB"), (1500, "1500 B")])
def test_size_is_written_in_the_largest_unit_that_divides_it(size: int, text: str) -> None:
    assert size_text(size) == text


def test_eight_rows_are_in_flight_and_two_groups_at_least() -> None:
    assert [groups_of(num_environments) for num_environments in (1, 4, 8, 32)] == [8, 2, 2, 2]


@pytest.mark.parametrize(("latency", "ring"), [(0.0, 1), (0.5, 2), (1.0, 2), (3.0, 4), (3.5, 5)])
def test_plateau_begins_where_the_step_time_of_the_others_covers_inference(latency: float, ring: int) -> None:
    assert plateau_ring(1.0, latency) == ring
