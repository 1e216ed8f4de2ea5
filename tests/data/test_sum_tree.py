"""Numbers that are drawn in proportion to their size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srlhpc.data.sum_tree import SumTree


def tree(*values: float) -> SumTree:
    made = SumTree(len(values))
    made.set(np.arange(len(values)), np.array(values))
    return made


def test_mass_leads_to_the_number_that_holds_it() -> None:
    assert tree(0.5, 0.5, 1.0).find(np.array([0.2, 0.5, 0.8, 1.5])).tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("capacity", [1, 2, 3, 1000, 1024, 1025, 4096, 4097, 20_000])
def test_every_number_of_any_capacity_can_be_found(capacity: int) -> None:
    made = SumTree(capacity)
    assert made.sum == 0
    made.set(np.arange(capacity), 1.0)
    assert made.sum == capacity
    assert made.find(np.arange(capacity) + 0.5).tolist() == list(range(capacity))


@given(
    st.integers(1, 70).flatmap(
        lambda size: st.tuples(
            st.just(size), st.lists(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, 9)), max_size=9))
        )
    )
)
def test_sums_and_masses_are_those_of_a_plain_list(case: tuple[int, list[list[tuple[int, int]]]]) -> None:
    size, changes = case
    made, plain = SumTree(size), [0] * size
    for change in changes:
        for index, value in change:
            plain[index] = value
        made.set(np.array([index for index, _ in change], np.int64), np.array([float(value) for _, value in change]))
    assert made.values(np.arange(size)).tolist() == plain
    assert made.sum == sum(plain)
    assert made.find(np.arange(sum(plain)) + 0.5).tolist() == np.repeat(np.arange(size), plain).tolist()


def test_large_tree_finds_what_a_plain_sum_finds() -> None:
    generator = np.random.default_rng(0)
    made, plain = SumTree(30_000), np.zeros(30_000)
    for _ in range(20):
        indices = generator.integers(30_000, size=500)
        values = generator.integers(5, size=500).astype(np.float64)
        plain[indices] = values
        made.set(indices, values)
    masses = generator.random(5000) * plain.sum()
    assert made.sum == plain.sum()
    assert made.find(masses).tolist() == np.searchsorted(np.cumsum(plain), masses, side="right").tolist()


@pytest.mark.parametrize("capacity", [6, 6000])
def test_rounding_never_leads_to_a_number_of_zero(capacity: int) -> None:
    values = np.where(np.arange(capacity) % 3 == 1, 0.1 + 1e-3 * np.arange(capacity), 0.0)
    made = SumTree(capacity)
    made.set(np.arange(capacity), values)
    edges = np.concatenate([np.cumsum(values), [made.sum, 1.001 * made.sum]])
    masses = np.concatenate([np.nextafter(edges, 0), edges, np.nextafter(edges, np.inf)])
    assert (made.values(made.find(masses)) > 0).all()


def test_number_of_zero_is_never_found_even_at_the_edges_of_the_mass() -> None:
    made = tree(0.0, 0.1, 0.0, 0.2, 0.0, 0.0)
    masses = np.array([0.0, 0.1, made.sum, np.nextafter(made.sum, 1), made.sum * (1 + 1e-12)])
    assert made.find(masses).tolist() == [1, 3, 3, 3, 3]


def test_sum_does_not_drift() -> None:
    made = tree(0.1, 0.2, 0.3)
    for _ in range(1000):
        made.set(np.array([1]), np.array([1e9]))
        made.set(np.array([1]), np.array([0.2]))
    assert made.sum == tree(0.1, 0.2, 0.3).sum


def test_reset_leaves_zeros_behind_what_it_gets() -> None:
    made = tree(1.0, 2.0, 3.0)
    made.reset(np.array([4.0]))
    assert made.values(slice(0, 3)).tolist() == [4, 0, 0]
    assert made.sum == 4
