from __future__ import annotations

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from srlhpc.policies.layers.recurrent import Memory, build_memory, cut_at_resets

STEPS, COLUMNS, FEATURES, SIZE = 12, 5, 3, 8
MemoryKind = Literal["lstm", "gru"]

RESETS = {
    "nowhere": [],
    "at the start": [(0, 0), (0, 3)],
    "at the end": [(11, 2)],
    "everywhere in one column": [(t, 1) for t in range(STEPS)],
    "in all columns at once": [(4, b) for b in range(COLUMNS)],
    "scattered": [(0, 4), (1, 0), (2, 0), (5, 3), (7, 0), (7, 2), (11, 1)],
}


def memory(kind: MemoryKind) -> Memory:
    torch.manual_seed(0)
    built = build_memory(kind, FEATURES, SIZE)
    for bias in (built.bias_ih, built.bias_hh):
        nn.init.normal_(bias)
    return built


def first(places: list[tuple[int, int]]) -> Tensor:
    flags = torch.zeros(STEPS, COLUMNS, dtype=torch.bool)
    for place in places:
        flags[place] = True
    return flags


def random_state(built: Memory) -> dict[str, Tensor]:
    return {name: torch.randn(COLUMNS, SIZE) for name in built.state_names}


def stepped(built: Memory, x: Tensor, state: dict[str, Tensor], flags: Tensor) -> Tensor:
    outputs = []
    for t in range(len(x)):
        state = built.step(x[t], state, flags[t])
        outputs.append(state["h"])
    return torch.stack(outputs)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("places", RESETS.values(), ids=RESETS)
def test_fragment_equals_single_steps_wherever_resets_are(kind: MemoryKind, places: list[tuple[int, int]]) -> None:
    built = memory(kind)
    x, state = torch.randn(STEPS, COLUMNS, FEATURES), random_state(built)
    torch.testing.assert_close(built(x, state, first(places)), stepped(built, x, state, first(places)))


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_gradients_of_a_fragment_equal_those_of_single_steps(kind: MemoryKind) -> None:
    built = memory(kind)
    x, state, flags = torch.randn(STEPS, COLUMNS, FEATURES), random_state(built), first(RESETS["scattered"])
    weights = torch.randn(STEPS, COLUMNS, SIZE)
    whole = torch.autograd.grad((weights * built(x, state, flags)).sum(), list(built.parameters()))
    single = torch.autograd.grad((weights * stepped(built, x, state, flags)).sum(), list(built.parameters()))
    torch.testing.assert_close(whole, single)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_step_equals_torchs_own_layer(kind: MemoryKind) -> None:
    built = memory(kind)
    layer: nn.Module = nn.LSTM(FEATURES, SIZE) if kind == "lstm" else nn.GRU(FEATURES, SIZE)
    layer.load_state_dict({f"{name}_l0": parameter for name, parameter in built.state_dict().items()})
    x = torch.randn(STEPS, COLUMNS, FEATURES)
    expected = layer(x)[0]
    found = stepped(built, x, built.initial_state(COLUMNS), first([]))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_what_came_before_a_reset_does_not_matter(kind: MemoryKind) -> None:
    built = memory(kind)
    x, flags = torch.randn(STEPS, COLUMNS, FEATURES), first([(6, 2)])
    changed = x.clone()
    changed[:6, 2] += 1
    before, after = (built(inputs, random_state(built), flags) for inputs in (x, changed))
    torch.testing.assert_close(before[6:, 2], after[6:, 2])
    assert not torch.equal(before[5, 2], after[5, 2])


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_state_that_is_not_a_number_ends_at_the_reset(kind: MemoryKind) -> None:
    built = memory(kind)
    state = {name: torch.full((COLUMNS, SIZE), torch.nan) for name in built.state_names}
    outputs = built(torch.randn(STEPS, COLUMNS, FEATURES), state, first(RESETS["in all columns at once"]))
    assert outputs[:4].isnan().all()
    assert outputs[4:].isfinite().all()


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_memory_stays_float32_under_autocast(kind: MemoryKind) -> None:
    built = memory(kind)
    x, state, flags = torch.randn(STEPS, COLUMNS, FEATURES), random_state(built), first(RESETS["scattered"])
    expected = built(x, state, flags)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(built(x, state, flags), expected)
        assert built.step(x[0], state, flags[0])["h"].dtype == torch.float32


@pytest.mark.parametrize("places", RESETS.values(), ids=RESETS)
def test_pieces_hold_every_record_in_order_and_none_across_a_reset(places: list[tuple[int, int]]) -> None:
    flags = first(places)
    pieces = cut_at_resets(flags)
    steps = torch.cat([bucket.records.flatten() for bucket in pieces.buckets])
    assert steps[pieces.places].tolist() == list(range(STEPS * COLUMNS))
    for bucket in pieces.buckets:
        for piece, column in enumerate(bucket.columns.tolist()):
            records = bucket.records[:, piece].unique(sorted=True)
            assert (records % COLUMNS == column).all()
            assert (records.diff() == COLUMNS).all()
            assert not flags.flatten()[records[1:]].any()
            assert bool(bucket.first[piece]) == (records[0] != column)
