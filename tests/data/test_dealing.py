"""Blocks that other stores have kept are dealt anew by group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srlhpc.comm.channel import Message
from srlhpc.data.block_store import BlockStore
from srlhpc.data.dealing import Deal, deal
from srlhpc.data.windows import WindowShape
from srlhpc.specs.replay import Draw, PrioritizedDraw, UniformDraw
from tests.data.plain_store import Given, PlainStore, Setup, blocks, columns_of
from tests.data.test_block_store import GIVEN, InTurn, drawn, filled, per_slot, runs_of, setups, store

BY_PRIORITY = PrioritizedDraw(alpha=1.0, uniform_share=0.0)


def sharded(setup: Setup, came: list[Message], shards: int, slots: int, draw: Draw) -> list[BlockStore]:
    """Stores that got the blocks by group, as replay ranks do."""
    made = [store(setup, slots, draw) for _ in range(shards)]
    for block in came:
        made[int(block.header[2]) % shards].add(block)
    return made


def dealt(
    sources: list[BlockStore], into: BlockStore, keeps: Callable[[int], bool] = lambda _group: True, *, shards: int = 1
) -> Deal:
    states = [source.save_state() for source in sources]
    made = deal(states, keeps, slots=into.slots, shards=shards)
    into.take_over(made, [runs_of(source) for source in sources])
    return made


@given(setups(), st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), GIVEN)
@settings(max_examples=100)
def test_each_new_shard_draws_every_window_of_its_groups(
    setup: Setup, before: int, after: int, slots: int, came: list[Given]
) -> None:
    all_blocks = list(blocks(setup, came))
    sources = sharded(setup, all_blocks, before, 20, UniformDraw())
    for place in range(after):
        into = store(setup, slots, generator=InTurn())
        made = dealt(sources, into, lambda group, place=place: group % after == place, shards=after)  # type: ignore[misc]
        taken = [
            next(run for run in runs_of(sources[shard]) if run.first <= number < run.first + len(run.group))
            for shard, number in zip(made.shard.tolist(), made.number.tolist(), strict=True)
        ]
        assert len(taken) == min(slots, sum(int(block.header[2]) % after == place for block in all_blocks))
        check_windows(into, setup, made, all_blocks)


def check_windows(into: BlockStore, setup: Setup, made: Deal, came: list[Message]) -> None:
    """The store draws the windows of the blocks that it took, which nothing follows."""
    by_name = {(int(block.header[2]), int(block.header[3])): block for block in came}
    mine = [by_name[name] for name in zip(made.group.tolist(), made.sequence.tolist(), strict=True)]
    ends = list(blocks(setup, [Given(group, follows=True) for group in range(3)]))
    for block in ends:
        block.header[3] = 1_000_000
    plain = PlainStore(setup, len(mine) + len(ends))
    for block in (*mine, *ends):
        plain.add(block)
    windows = {key: window for key, window in plain.windows().items() if key[0] // per_slot(setup) < len(mine)}
    assert into.drawable == len(windows)
    if not windows:
        return
    fields = drawn(into, setup, len(windows))
    for column, item in enumerate(fields["slot"].tolist()):
        expected = windows[item, 0]
        found = columns_of(fields, expected, column)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=f"{name} of {item}")


def test_newest_blocks_of_all_shards_are_taken_in_their_order() -> None:
    setup = Setup(records=1, environments=1)
    came = list(blocks(setup, [Given(0, True), Given(1, True), Given(0, True), Given(1, True), Given(1, True)]))
    made = deal([s.save_state() for s in sharded(setup, came, 2, 10, UniformDraw())], lambda _: True, slots=3, shards=1)
    assert list(zip(made.group.tolist(), made.sequence.tolist(), strict=True)) == [(1, 1), (0, 1), (1, 2)]


def test_store_that_was_overwritten_gives_what_it_has() -> None:
    setup = Setup(records=1, environments=1)
    into = store(setup, 5)
    made = dealt([filled(setup, 4, 7)], into)
    assert made.number.tolist() == [3, 4, 5, 6]
    assert (into.blocks, into.inserted_blocks, into.drawable) == (4, 4, 4)


def test_priorities_go_with_their_windows_and_new_ones_get_the_greatest() -> None:
    setup = Setup(records=2, environments=1, window=WindowShape(1, after=1))
    source = filled(setup, 2, 3, BY_PRIORITY)
    # Slot 0 has block 2, slot 1 block 1; the window that begins with the last record is not whole yet.
    assert source.drawable == 3
    source.update(np.array([0, 2, 3]), np.array([1, 0, 0]), np.array([4, 1, 2], np.float32))
    into = store(setup, 3, BY_PRIORITY)
    dealt([source], into)
    fields = drawn(into, setup, 64)
    shares = dict(zip(fields["slot"].tolist(), (11 * fields["probability"]).tolist(), strict=True))
    assert shares == pytest.approx({0: 1, 1: 2, 2: 4, 3: 4})


@pytest.mark.parametrize(
    ("draw", "window"), [(PrioritizedDraw(alpha=0.5), WindowShape(1)), (BY_PRIORITY, WindowShape(2))]
)
def test_priorities_of_other_draws_or_windows_say_nothing(draw: Draw, window: WindowShape) -> None:
    source = filled(Setup(records=2), 2, 2, BY_PRIORITY)
    source.update(np.arange(2), np.zeros(2, np.int64), np.array([4, 2], np.float32))
    setup = Setup(records=2, window=window)
    into = store(setup, 2, draw)
    dealt([source], into)
    assert set(drawn(into, setup, 9)["probability"].round(9)) == {round(1 / into.drawable, 9)}


def test_steps_that_came_in_are_shared_out() -> None:
    setup = Setup(records=2, environments=1)
    sources = [filled(setup, 4, count) for count in (2, 4)]
    into = store(setup, 4)
    dealt(sources, into, shards=3)
    assert (into.inserted_steps, into.inserted_valid, into.inserted_records) == (4, 4, 4)


def test_blocks_that_are_missing_leave_the_store_empty() -> None:
    setup = Setup()
    source, into = filled(setup, 4, 3), store(setup, 4)
    states: list[Any] = [source.save_state()]
    with pytest.raises(ValueError, match="3 blocks that were kept are missing"):
        into.take_over(deal(states, lambda _: True, slots=4, shards=1), [[]])
    assert (into.blocks, into.drawable) == (0, 0)
    into.take_over(deal(states, lambda _: True, slots=4, shards=1), [runs_of(source)])
    assert into.blocks == 3


def test_stores_that_kept_nothing_give_nothing() -> None:
    setup = Setup()
    into = store(setup, 2, BY_PRIORITY)
    dealt([store(setup, 2, BY_PRIORITY)], into)
    assert into.blocks == 0
