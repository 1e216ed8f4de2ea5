"""The store of a replay rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srlhpc.comm.channel import Message
from srlhpc.data.block_store import BlockStore, FirstPriority
from srlhpc.data.checkpoint import read_checkpoint, write_checkpoint
from srlhpc.data.dealing import deal
from srlhpc.data.layout import Array
from srlhpc.data.segments import Run
from srlhpc.data.tree import decode_tree, encode_tree
from srlhpc.data.windows import WindowShape, window_layout
from srlhpc.specs.replay import Draw, PrioritizedDraw, UniformDraw
from tests.data.plain_store import Given, PlainStore, Setup, blocks, columns_of


class InTurn:
    """A generator that draws every place of the set in turn."""

    def integers(self, high: int, *, size: int) -> Array:
        return np.arange(size) % high


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    records = draw(st.sampled_from([1, 2, 4, 6]))
    stride = draw(st.sampled_from([n for n in range(1, records + 1) if records % n == 0]))
    window = WindowShape(draw(st.integers(1, 5)), draw(st.integers(0, 4)), draw(st.integers(0, 3)), stride)
    sizes = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    return Setup(records, *sizes, window, has_memory=draw(st.booleans()), joint=draw(st.booleans()))


GIVEN = st.lists(
    st.builds(
        Given,
        st.integers(0, 2),
        st.sampled_from([True, True, True, False]),
        st.sampled_from([0.0, 0.3, 1.0]),
        st.integers(0, 99),
    ),
    min_size=1,
    max_size=14,
)


def store(
    setup: Setup,
    slots: int,
    draw: Draw | None = None,
    generator: Any = None,
    first_priority: FirstPriority | None = None,
    max_age: int | None = None,
) -> BlockStore:
    return BlockStore(
        setup.block,
        setup.window,
        slots=slots,
        draw=draw or UniformDraw(),
        generator=cast("np.random.Generator", generator or np.random.default_rng(0)),
        first_priority=first_priority,
        max_age=max_age,
    )


def drawn(source: BlockStore, setup: Setup, count: int) -> dict[str, Array]:
    message = Message.allocate(window_layout(setup.shapes, setup.window.records, count), 0)
    for array in message.fields.values():
        array.reshape(-1).view(np.uint8)[:] = 1
    source.draw(message.fields)
    return dict(message.fields)


@given(setups(), st.integers(1, 6), GIVEN)
@settings(max_examples=300)
def test_every_window_of_a_plain_store_is_drawn_as_it_is(setup: Setup, slots: int, came: list[Given]) -> None:
    fast, plain = store(setup, slots, generator=InTurn()), PlainStore(setup, slots)
    for block in blocks(setup, came):
        fast.add(block)
        plain.add(block)
    windows = plain.windows()
    assert fast.drawable == len(windows)
    if not windows:
        return
    fields = drawn(fast, setup, len(windows))
    assert set(zip(fields["slot"].tolist(), fields["generation"].tolist(), strict=True)) == set(windows)
    assert (fields["probability"] == 1 / len(windows)).all()
    for column, item in enumerate(zip(fields["slot"].tolist(), fields["generation"].tolist(), strict=True)):
        found = columns_of(fields, windows[item], column)
        for name, array in windows[item].items():
            np.testing.assert_array_equal(found[name], array, err_msg=f"{name} of {item}")


def dyadic(fields: Mapping[str, Array]) -> Array:
    """Priorities whose sums have no rounding error."""
    values = fields["out.q"]
    return cast("Array", values.sum(axis=(0, *range(2, values.ndim))) % 8).astype(np.float32)


@given(setups(), st.integers(1, 6), GIVEN, st.sampled_from([0.0, 0.25]))
def test_windows_are_drawn_in_exact_proportion_to_what_the_rule_says(
    setup: Setup, slots: int, came: list[Given], share: float
) -> None:
    fast = store(setup, slots, PrioritizedDraw(alpha=1.0, uniform_share=share), first_priority=dyadic)
    plain = PlainStore(setup, slots)
    for block in blocks(setup, came):
        fast.add(block)
        plain.add(block)
    early = setup.window.burn_in_steps
    priorities = {item: float(window["out.q"][early:].sum() % 8) for item, window in plain.windows().items()}
    total = sum(priorities.values())
    if not total:
        return
    count = 64
    fields = drawn(fast, setup, count)
    for item, probability in zip(
        zip(fields["slot"].tolist(), fields["generation"].tolist(), strict=True), fields["probability"], strict=True
    ):
        assert probability == (1 - share) * (priorities[item] / total) + share / len(priorities)
    if not share:
        for (slot, _), priority in priorities.items():
            # Of 64 equal slices, so many at least lie in the item's share of the mass, and two more at most touch it.
            times = np.count_nonzero(fields["slot"] == slot)
            assert abs(times - count * priority / total) < 2
            assert priority or not times


@given(setups(), st.integers(1, 4), GIVEN, GIVEN, st.booleans())
@settings(max_examples=50)
def test_a_store_that_is_loaded_goes_on_as_if_nothing_had_been(
    setup: Setup, slots: int, before: list[Given], after: list[Given], by_priority: bool
) -> None:
    draw: Draw = PrioritizedDraw(uniform_share=0.25) if by_priority else UniformDraw()
    one, other = store(setup, slots, draw), store(setup, slots, draw, np.random.default_rng(1))
    came = list(blocks(setup, before + after))
    for block in came[: len(before)]:
        one.add(block)
    if one.drawable:
        fields = drawn(one, setup, 5)
        one.update(fields["slot"], fields["generation"], np.arange(5, dtype=np.float32))
    other.load_state(decode_tree(np.concatenate(encode_tree(one.save_state()))), runs_of(one))
    for block in came[len(before) :]:
        one.add(block)
        other.add(block)
        assert other.drawable == one.drawable
        if one.drawable:
            same, fields = drawn(other, setup, 7), drawn(one, setup, 7)
            assert {name: array.tobytes() for name, array in same.items()} == {
                name: array.tobytes() for name, array in fields.items()
            }
            one.update(fields["slot"], fields["generation"], np.arange(7, dtype=np.float32))
            other.update(fields["slot"], fields["generation"], np.arange(7, dtype=np.float32))
    assert (other.blocks, other.inserted_records, other.inserted_valid, other.inserted_steps) == (
        one.blocks,
        one.inserted_records,
        one.inserted_valid,
        one.inserted_steps,
    )


def runs_of(source: BlockStore) -> list[Run]:
    """Copies of all blocks that a store has."""
    first = source.inserted_blocks - source.blocks
    return [
        Run(run.first, run.group.copy(), run.sequence.copy(), {name: a.copy() for name, a in run.fields.items()})
        for run in source.runs(first, source.inserted_blocks)
    ]


def filled(setup: Setup, slots: int, count: int, draw: Draw | None = None) -> BlockStore:
    """A store that got so many blocks of one group, all valid."""
    source = store(setup, slots, draw)
    for block in blocks(setup, [Given(0, True)] * count):
        source.add(block)
    return source


def test_state_fits_stores_of_the_same_slots_windows_and_draws() -> None:
    setup = Setup()
    state = filled(setup, 2, 3, PrioritizedDraw(alpha=0.5)).save_state()
    assert store(setup, 2, PrioritizedDraw(alpha=0.5, beta=1.0)).fits(state)
    assert not store(setup, 3, PrioritizedDraw(alpha=0.5)).fits(state)
    assert not store(setup, 2, PrioritizedDraw(alpha=0.6)).fits(state)
    assert not store(setup, 2).fits(state)
    assert not store(Setup(window=WindowShape(2)), 2, PrioritizedDraw(alpha=0.5)).fits(state)
    assert store(setup, 2).fits(filled(setup, 2, 1).save_state())


@pytest.mark.parametrize("other", [Setup(records=2), Setup(environments=3), Setup(has_memory=True)])
def test_blocks_of_another_shape_are_refused_and_leave_the_store_empty(other: Setup) -> None:
    source, mine = filled(Setup(), 2, 3), store(other, 2)
    with pytest.raises(ValueError, match="no such field"):
        mine.load_state(source.save_state(), runs_of(source))
    assert (mine.blocks, mine.drawable) == (0, 0)


def test_blocks_that_are_missing_are_counted_and_leave_the_store_empty() -> None:
    source, other = filled(Setup(), 4, 7), store(Setup(), 4)
    with pytest.raises(ValueError, match="3 blocks that were kept are missing"):
        other.load_state(source.save_state(), runs_of(source)[:1])
    assert (other.blocks, other.drawable) == (0, 0)


@given(setups(), st.integers(1, 6), GIVEN)
@settings(max_examples=50)
def test_blocks_after_the_end_of_all_sequences_begin_anew(setup: Setup, slots: int, came: list[Given]) -> None:
    """As if every group had left a number out."""
    ended, plain = store(setup, slots, generator=InTurn()), PlainStore(setup, slots + 3)
    more = [Given(group, follows=False, seed=group) for group in range(3)]
    all_blocks = list(blocks(setup, came + more))
    for block in all_blocks[: len(came)]:
        ended.add(block)
    ended.end_sequences()
    for block in all_blocks:
        plain.add(block)
    # Slots differ, since the plain store needs room for the blocks that end each sequence there.
    first = max(0, len(came) - slots)
    expected = [
        window
        for (item, generation), window in plain.windows().items()
        if first <= generation * (slots + 3) + item // per_slot(setup) < len(came)
    ]
    assert ended.drawable == len(expected)
    if not expected:
        return
    fields = drawn(ended, setup, len(expected))
    found = [
        {name: array.tobytes() for name, array in columns_of(fields, expected[0], column).items()}
        for column in range(len(expected))
    ]
    for window in expected:
        assert {name: np.asarray(a, fields[name].dtype).tobytes() for name, a in window.items()} in found


def per_slot(setup: Setup) -> int:
    return setup.starts * setup.columns


def test_counts_are_of_all_that_came_in() -> None:
    setup = Setup(records=4, environments=2, agents=2)
    source = store(setup, 2)
    came = list(blocks(setup, [Given(0, True, 0.5, seed) for seed in range(5)]))
    for block in came:
        source.add(block)
    assert source.blocks == 2
    assert source.inserted_records == 5 * 16
    assert source.inserted_valid == sum(np.count_nonzero(block.fields["valid"]) for block in came)
    assert source.inserted_steps == sum(np.count_nonzero(block.fields["valid"].any(axis=2)) for block in came)


def test_priority_of_an_overwritten_window_is_dropped_and_counted() -> None:
    setup = Setup(records=1, environments=2)
    source = filled(setup, 2, 2, PrioritizedDraw(alpha=1.0, uniform_share=0.0))
    old = np.array([0, 1, 2, 3])
    source.add(list(blocks(setup, [Given(0, True)] * 3))[2])
    # Slot 0 was overwritten, which holds the items 0 and 1.
    assert source.update(old, np.zeros(4, np.int64), np.array([0, 0, 2, 4], np.float32)) == 2
    fields = drawn(source, setup, 64)
    assert probabilities(fields) == {0: 1 / 8, 1: 1 / 8, 2: 2 / 8, 3: 4 / 8}
    assert dict(zip(fields["slot"].tolist(), fields["generation"].tolist(), strict=True)) == {0: 1, 1: 1, 2: 0, 3: 0}


def probabilities(fields: Mapping[str, Array]) -> dict[int, float]:
    return dict(zip(fields["slot"].tolist(), fields["probability"].tolist(), strict=True))


OLD = PrioritizedDraw(alpha=1.0, uniform_share=0.0)
ONE_RECORD = WindowShape(fragment_steps=1)


def of_versions(setup: Setup, *versions: int) -> list[Message]:
    """Blocks of one group that acted on those versions."""
    made = list(blocks(setup, [Given(0, True)] * len(versions)))
    for version, block in zip(versions, made, strict=True):
        block.fields["versions"][...] = version
    return made


def aged(*versions: int, window: WindowShape = ONE_RECORD, slots: int = 4) -> tuple[BlockStore, Setup]:
    """A store with a block of each version, of one column and two records; 10 updates later they are too old."""
    setup = Setup(records=2, environments=1, window=window)
    source = store(setup, slots, OLD, max_age=10)
    for block in of_versions(setup, *versions):
        source.add(block)
    return source, setup


def places(source: BlockStore, setup: Setup) -> set[int]:
    """Items that can be drawn."""
    return set(probabilities(drawn(source, setup, 64)))


def test_windows_that_are_too_old_are_drawn_no_more_and_their_priorities_are_dropped() -> None:
    source, setup = aged(3, 5, 7)
    source.expire(15)
    assert (source.blocks, source.expired, source.drawable) == (3, 1, 4)
    assert source.update(np.array([0, 2]), np.zeros(2, np.int64), np.array([9, 3], np.float32)) == 1
    assert places(source, setup) == {2, 3, 4, 5}
    source.expire(16)
    assert places(source, setup) == {4, 5}


def test_a_window_of_an_old_block_that_becomes_whole_later_is_not_drawn() -> None:
    source, setup = aged(3, window=WindowShape(fragment_steps=1, after=1))
    source.expire(14)
    assert source.drawable == 0
    source.add(of_versions(setup, 3, 4)[1])
    assert places(source, setup) == {2}


def test_a_block_that_is_too_old_when_it_comes_is_not_drawn() -> None:
    source, setup = aged(5)
    source.expire(15)
    source.add(of_versions(setup, 5, 4)[1])
    assert (source.expired, places(source, setup)) == (1, {0, 1})


def test_a_slot_that_is_overwritten_is_young_again() -> None:
    source, setup = aged(3, 4, slots=2)
    source.expire(19)
    source.add(of_versions(setup, 3, 4, 9)[2])
    assert (source.expired, places(source, setup)) == (1, {0, 1})


def test_age_is_part_of_the_state() -> None:
    source, setup = aged(3, 5, 7)
    source.expire(15)
    other = store(setup, 4, OLD, max_age=10)
    assert other.fits(source.save_state())
    other.load_state(source.save_state(), source.runs(0, 3))
    for each in (source, other):
        assert each.expired == 1
        each.expire(16)
        assert places(each, setup) == {4, 5}


@pytest.mark.parametrize(
    ("max_age", "at_first", "later"),
    [(10, {2, 3, 4, 5}, {4, 5}), (11, {0, 1, 2, 3, 4, 5}, {4, 5}), (None, {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5})],
)
def test_blocks_that_are_dealt_anew_are_drawn_as_the_new_age_says(
    max_age: int | None, at_first: set[int], later: set[int]
) -> None:
    source, setup = aged(3, 5, 7)
    source.expire(15)
    state = source.save_state()
    other = store(setup, 4, OLD, max_age=max_age)
    assert other.fits(state) == (max_age == 10)
    other.take_over(deal([state], lambda _group: True, slots=4, shards=1), [source.runs(0, 3)])
    assert places(other, setup) == at_first
    other.expire(17)
    assert places(other, setup) == later


def test_last_priority_of_an_item_counts() -> None:
    setup = Setup(records=1, environments=2)
    source = filled(setup, 1, 1, PrioritizedDraw(alpha=1.0, uniform_share=0.0))
    zeros = np.zeros(3, np.int64)
    assert source.update(np.array([0, 1, 0]), zeros, np.array([7, 1, 3], np.float32)) == 0
    assert probabilities(drawn(source, setup, 64)) == {0: 0.75, 1: 0.25}


def test_new_windows_get_the_greatest_priority_so_far() -> None:
    setup = Setup(records=1, environments=1)
    source = store(setup, 4, PrioritizedDraw(alpha=1.0, uniform_share=0.0))
    first, second, third = blocks(setup, [Given(0, True)] * 3)
    source.add(first)
    source.update(np.array([0]), np.array([0]), np.array([6], np.float32))
    source.add(second)
    source.update(np.array([0]), np.array([0]), np.array([2], np.float32))
    source.add(third)
    assert probabilities(drawn(source, setup, 64)) == {0: 2 / 14, 1: 6 / 14, 2: 6 / 14}


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_priority_that_is_no_share_is_an_error(bad: float) -> None:
    source = filled(Setup(records=1), 1, 1, PrioritizedDraw())
    with pytest.raises(ValueError, match="finite and not negative"):
        source.update(np.array([0]), np.array([0]), np.array([bad], np.float32))


def test_uniform_draws_ask_for_no_priorities() -> None:
    def never(fields: Mapping[str, Array]) -> Array:
        raise AssertionError

    setup = Setup()
    source = store(setup, 2, first_priority=never)
    source.add(next(blocks(setup, [Given(0, True)])))
    assert source.drawable == 8


def test_first_priority_gathers_only_what_it_asks_for() -> None:
    setup = Setup(records=1, environments=2)
    seen: dict[str, Any] = {}

    def first_priority(fields: Mapping[str, Array]) -> Array:
        seen.update(names=set(fields), count=len(fields), q=fields["out.q"], x=fields["obs.x"])
        with pytest.raises(KeyError):
            fields["nothing"]
        return np.ones(2, np.float32)

    source = store(setup, 2, PrioritizedDraw(), first_priority=first_priority)
    block = next(blocks(setup, [Given(0, True)]))
    source.add(block)
    assert seen["names"] == {*block.fields, "cut"}
    assert seen["count"] == len(seen["names"])
    np.testing.assert_array_equal(seen["q"], block.fields["out.q"].reshape(1, 2))
    np.testing.assert_array_equal(seen["x"], block.fields["obs.x"].reshape(2, 2, 2))


def test_state_goes_into_a_checkpoint_file(tmp_path: Any) -> None:
    setup = Setup(has_memory=True)
    one = filled(setup, 2, 3, PrioritizedDraw())
    write_checkpoint(tmp_path / "file", one.save_state())
    other = store(setup, 2, PrioritizedDraw(), np.random.default_rng(5))
    other.load_state(read_checkpoint(tmp_path / "file"), runs_of(one))
    for _ in range(2):
        assert drawn(one, setup, 9)["slot"].tolist() == drawn(other, setup, 9)["slot"].tolist()
