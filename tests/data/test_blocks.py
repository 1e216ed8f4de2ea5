"""The fields of blocks, requests and replies of one policy."""

from __future__ import annotations

from srlhpc.comm.channel import Header
from srlhpc.data.blocks import (
    BlockHeader,
    PolicyShapes,
    ReplyHeader,
    RequestHeader,
    block_layout,
    reply_layout,
    request_layout,
)
from srlhpc.data.layout import HEADER_ITEMS, Axis, Layout
from srlhpc.environment import ActionSpace, ArraySpec, Continuous, Discrete, Kind, MultiDiscrete

T, E, A = 5, 3, 2


def shapes(actions: ActionSpace, *, masks: bool = False, recurrent: bool = False) -> PolicyShapes:
    observations = {"image": ArraySpec((4, 4), "uint8"), "speed": ArraySpec((), "float32")}
    state = {"h": ArraySpec((6,), "float32")} if recurrent else {}
    return PolicyShapes(Kind("k", ("a", "b"), observations, actions, masks), state, {"value": ArraySpec((), "float32")})


def described(layout: Layout) -> dict[str, tuple[tuple[int, ...], str]]:
    return {field.name: (field.shape, field.dtype) for field in layout.fields}


def test_block_has_one_observation_and_first_more_than_records() -> None:
    assert described(block_layout(shapes(Discrete(3)), T, E, A)) == {
        "obs.image": ((T + 1, E, A, 4, 4), "uint8"),
        "obs.speed": ((T + 1, E, A), "float32"),
        "first": ((T + 1, E, A), "bool"),
        "actions": ((T, E, A), "int64"),
        "log_probs": ((T, E, A), "float32"),
        "rewards": ((T, E, A), "float32"),
        "terminated": ((T, E, A), "bool"),
        "truncated": ((T, E, A), "bool"),
        "valid": ((T, E, A), "bool"),
        "alive": ((T, E, A), "bool"),
        "versions": ((T,), "int64"),
        "out.value": ((T, E, A), "float32"),
    }


def test_masks_and_states_are_there_where_the_policy_has_them() -> None:
    fields = described(block_layout(shapes(MultiDiscrete((2, 3)), masks=True, recurrent=True), T, E, A))
    assert fields["action_masks"] == ((T + 1, E, A, 5), "bool")
    assert fields["actions"] == ((T, E, A, 2), "int64")
    assert fields["state.h"] == fields["final_state.h"] == ((E, A, 6), "float32")


def test_states_before_the_later_chunks_are_there_where_a_fragment_has_several() -> None:
    fields = described(block_layout(shapes(Discrete(3), recurrent=True), T, E, A, chunks=5))
    assert fields["chunk_state.h"] == ((4, E, A, 6), "float32")
    whole = described(block_layout(shapes(Discrete(3), recurrent=True), T, E, A))
    assert fields.keys() - whole.keys() == {"chunk_state.h"}


def test_request_is_one_record_without_action() -> None:
    assert described(request_layout(shapes(Continuous(2)), E, A)) == {
        "obs.image": ((E, A, 4, 4), "uint8"),
        "obs.speed": ((E, A), "float32"),
        "first": ((E, A), "bool"),
        "alive": ((E, A), "bool"),
    }


def test_reply_has_action_outputs_and_state() -> None:
    assert described(reply_layout(shapes(Continuous(2), recurrent=True), E, A)) == {
        "actions": ((E, A, 2), "float32"),
        "log_probs": ((E, A), "float32"),
        "out.value": ((E, A), "float32"),
        "state.h": ((E, A, 6), "float32"),
    }


def test_headers_keep_clear_of_the_channels_and_of_each_other() -> None:
    for header in (BlockHeader, RequestHeader, ReplyHeader):
        places = [int(place) for place in header]
        assert len(set(places)) == len(places)
        assert not set(places) & {int(place) for place in Header}
        assert max(places) < HEADER_ITEMS


def test_every_array_of_a_block_says_what_its_axes_count() -> None:
    sizes = {Axis.ENVIRONMENT: E, Axis.AGENT: A, Axis.CHUNK: 4}
    layout = block_layout(shapes(Discrete(3), masks=True, recurrent=True), T, E, A, chunks=5)
    for field in layout.fields:
        for axis, size in zip(field.axes, field.shape, strict=False):
            assert size in (T, T + 1) if axis is Axis.RECORD else size == sizes[axis]
    axes = {field.name: field.axes for field in layout.fields}
    assert axes["versions"] == (Axis.RECORD,)
    assert axes["obs.image"] == axes["rewards"] == (Axis.RECORD, Axis.ENVIRONMENT, Axis.AGENT)
    assert axes["chunk_state.h"] == (Axis.CHUNK, Axis.ENVIRONMENT, Axis.AGENT)
    assert layout.size(Axis.ENVIRONMENT) == E
