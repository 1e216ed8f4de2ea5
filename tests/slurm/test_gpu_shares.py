"""How ranks share the GPUs of a node."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srlhpc.slurm.gpu_shares import gpu_places, gpus_of_node


@pytest.mark.parametrize(
    ("shares", "places"),
    [
        ([], []),
        ([0, 1, 1], [[], [0], [1]]),
        ([0, 2, 2, 0], [[], [0, 1], [2, 3], []]),
        ([0.5, 0.5, 0.5, 0.5], [[0], [0], [1], [1]]),
        ([1, 0.5, 0.5, 0], [[0], [1], [1], []]),
        ([0.5, 1, 0.5], [[0], [1], [2]]),
        ([0.6, 0.6, 0.6], [[0], [1], [2]]),
        ([0.1] * 10, [[0]] * 10),
        ([1 / 3] * 4, [[0], [0], [0], [1]]),
        ([1.5, 0.5], [[0, 1], [2]]),
    ],
)
def test_ranks_of_a_node_get_gpus_in_order_and_shares_together(shares: list[float], places: list[list[int]]) -> None:
    assert [list(each) for each in gpu_places(shares)] == places


@given(st.lists(st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 2.0]), max_size=12))
def test_shared_gpu_is_never_more_than_whole_and_none_is_left_out(shares: list[float]) -> None:
    places = gpu_places(shares)
    for gpu in range(gpus_of_node(shares)):
        users = [share for share, own in zip(shares, places, strict=True) if gpu in own]
        assert users
        assert users == [max(users)] or sum(users) <= 1
    taken = [own for own in places if own]
    assert all(before.start <= after.start for before, after in pairwise(taken))
