"""A set of items from which each is drawn with the same chance."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from srlhpc.data.item_set import ItemSet

CAPACITY = 12


@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, CAPACITY - 1)))))
def test_set_has_what_was_added_and_not_removed(changes: list[tuple[bool, set[int]]]) -> None:
    items, plain = ItemSet(CAPACITY), set[int]()
    for adds, some in changes:
        if adds:
            items.add(np.array(sorted(some - plain), np.int64))
            plain |= some
        else:
            items.remove(np.array(sorted(some), np.int64))
            plain -= some
        assert sorted(items.items().tolist()) == sorted(plain)
        assert len(items) == len(plain)
        if plain:
            assert set(items.draw(200, np.random.default_rng(0)).tolist()) == plain


def test_set_that_gets_its_items_back_draws_the_same() -> None:
    one, other = ItemSet(CAPACITY), ItemSet(CAPACITY)
    one.add(np.arange(CAPACITY))
    one.remove(np.array([2, 7, 3, CAPACITY - 1]))
    other.add(np.array([1, 7]))
    other.load_state(one.save_state())
    assert len(other) == CAPACITY - 4
    draws = [items.draw(50, np.random.default_rng(4)).tolist() for items in (one, other)]
    assert draws[0] == draws[1]
    other.add(np.array([7]))
    assert sorted(other.items().tolist()) == [0, 1, 4, 5, 6, 7, 8, 9, 10]
