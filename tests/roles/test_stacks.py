"""Stacks of frames on their way from the environment into batches and windows, beside stacks that travel whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from srlhpc.algorithms.algorithm import Batch
from srlhpc.comm.channel import Message
from srlhpc.data.block_store import BlockStore
from srlhpc.data.blocks import NEW_STACKS, PolicyShapes, block_layout
from srlhpc.data.windows import WindowShape, window_layout
from srlhpc.environment import ArraySpec
from srlhpc.roles.training.staging import Staging
from srlhpc.specs.replay import UniformDraw
from tests.roles.playing import Block, Play
from tests.scripted import Script, Scripted
from tests.stacked import Stacked

AGENTS = ("a", "b")
SPANS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=3)
SCRIPTS = st.builds(
    lambda steps, end, spans, cut: Script(steps, end, {"b": spans}, cut),
    st.integers(1, 9),
    st.sampled_from(["terminated", "truncated"]),
    SPANS,
    st.sampled_from([(), ("b",)]),
)


@dataclass(frozen=True)
class Case:
    """What is played and how it is stacked."""

    scripts: tuple[tuple[Script, ...], ...]
    frames: int
    filled_with: Literal["zeros", "newest"]
    every: int
    records: int
    burn_in: int = 0
    trained: tuple[int, ...] = (0, 1)

    def play(self, *, is_declared: bool) -> Play:
        inner = Scripted(self.scripts, {"agent": AGENTS})
        stacked = Stacked(inner, self.frames, self.filled_with, is_declared=is_declared, every=self.every)
        seat = {"agents": (0, 1), "trained": self.trained, "records": self.records, "burn_in": self.burn_in}
        return Play(stacked, default=seat)

    def shapes(self, play: Play) -> PolicyShapes:
        return PolicyShapes(play.environment.spaces.kind("agent"), {}, {"value": ArraySpec((), "float32")})


CASES = st.builds(
    Case,
    st.lists(st.lists(SCRIPTS, min_size=1, max_size=3).map(tuple), min_size=1, max_size=2).map(tuple),
    st.integers(2, 5),
    st.sampled_from(["zeros", "newest"]),
    st.integers(1, 2),
    st.sampled_from([1, 2, 4, 7]),
)


def both(case: Case, steps: int) -> tuple[Play, Play]:
    """The same play with stacks that are declared, and not; new episodes begin in between."""
    plays = case.play(is_declared=True), case.play(is_declared=False)
    for play in plays:
        play.run(steps)
        play.actor.start(1)
        play.run(steps)
        assert (NEW_STACKS in play.only.blocks[0].fields) == (play is plays[0])
    return plays


def staged(case: Case, play: Play) -> Batch:
    blocks = play.only.blocks
    layout = block_layout(case.shapes(play), case.records, len(case.scripts), len(case.trained))
    staging = Staging(layout, len(blocks), torch.device("cpu"))
    for block in blocks:
        staging.add(cast("Message", block))
    return staging.batch(version=0, steps=0, burn_in=case.burn_in)


def assert_equal(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(np.asarray(found[name]), np.asarray(expected[name]), err_msg=name)


@given(CASES, st.integers(0, 3), st.sampled_from([(0, 1), (0,), (1,)]))
@settings(max_examples=40)
def test_batch_holds_the_environments_own_stacks(case: Case, burn_in: int, trained: tuple[int, ...]) -> None:
    case = Case(case.scripts, case.frames, case.filled_with, case.every, case.records + burn_in, burn_in, trained)
    declared, plain = both(case, 3 * case.records + 2)
    stacks, whole = staged(case, declared), staged(case, plain)
    # Some stacks are made before all are.
    places = torch.arange(whole.first.numel()).flip(0)[::2]
    assert_equal(stacks.observations_at(places), whole.observations_at(places))
    assert_equal(stacks.fields, whole.fields)
    assert_equal(stacks.observations_at(places), whole.observations_at(places))


@st.composite
def windows(draw: st.DrawFn, records: int) -> WindowShape:
    stride = draw(st.sampled_from([n for n in range(1, records + 1) if records % n == 0]))
    return WindowShape(draw(st.integers(1, 5)), draw(st.integers(0, 3)), draw(st.integers(0, 3)), stride)


def drawn(case: Case, play: Play, shape: WindowShape, slots: int, blocks: Sequence[Block]) -> Mapping[str, Any]:
    layout = block_layout(case.shapes(play), case.records, len(case.scripts), len(case.trained))
    store = BlockStore(
        layout, shape, slots=slots, draw=UniformDraw(), generator=np.random.default_rng(0), first_priority=None
    )
    for block in blocks:
        store.add(cast("Message", block))
    message = Message.allocate(window_layout(case.shapes(play), shape.records, 50), 0)
    if store.drawable:
        store.draw(message.fields)
    return message.fields


@given(CASES, st.data())
@settings(max_examples=40)
def test_windows_hold_the_environments_own_stacks(case: Case, data: st.DataObject) -> None:
    shape, slots = data.draw(windows(case.records)), data.draw(st.integers(1, 6))
    declared, plain = both(case, 3 * case.records + 2)
    # A block that is missing ends the windows before it with a cut.
    lost = data.draw(st.sets(st.integers(0, len(plain.only.blocks) - 1), max_size=2))
    stacks, whole = (
        drawn(case, play, shape, slots, [b for i, b in enumerate(play.only.blocks) if i not in lost])
        for play in (declared, plain)
    )
    assert_equal(stacks, whole)
