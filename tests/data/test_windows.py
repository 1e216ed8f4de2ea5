"""Layouts of windows of records, and of the wish for them."""

from __future__ import annotations

from srlhpc.comm.channel import Header
from srlhpc.data.blocks import PolicyShapes
from srlhpc.data.layout import Axis, Field
from srlhpc.data.windows import DrawHeader, WindowHeader, WindowShape, draws_layout, window_layout
from srlhpc.environment import ArraySpec, Discrete, Kind

R, N = 7, 3
KIND = Kind("k", ("a", "b"), {"image": ArraySpec((4, 4), "uint8")}, Discrete(3), has_action_masks=True)


def shapes(*, recurrent: bool) -> PolicyShapes:
    state = {"h": ArraySpec((6,), "float32")} if recurrent else {}
    return PolicyShapes(KIND, state, {"q": ArraySpec((), "float32")})


def test_window_has_one_entry_of_what_is_seen_more_than_records() -> None:
    fields = {field.name: (field.shape, field.dtype) for field in window_layout(shapes(recurrent=True), R, N).fields}
    assert fields == {
        "obs.image": ((R + 1, N, 4, 4), "uint8"),
        "first": ((R + 1, N), "bool"),
        "action_masks": ((R + 1, N, 3), "bool"),
        "actions": ((R, N), "int64"),
        "log_probs": ((R, N), "float32"),
        "rewards": ((R, N), "float32"),
        "terminated": ((R, N), "bool"),
        "truncated": ((R, N), "bool"),
        "valid": ((R, N), "bool"),
        "alive": ((R, N), "bool"),
        "versions": ((R, N), "int64"),
        "out.q": ((R, N), "float32"),
        "cut": ((R, N), "bool"),
        "state.h": ((N, 6), "float32"),
        "slot": ((N,), "int64"),
        "generation": ((N,), "int64"),
        "probability": ((N,), "float64"),
    }


def test_axes_of_windows_are_records_and_columns() -> None:
    axes = {field.name: field.axes for field in window_layout(shapes(recurrent=True), R, N).fields}
    assert axes["obs.image"] == axes["versions"] == axes["cut"] == (Axis.RECORD, Axis.COLUMN)
    assert axes["state.h"] == axes["slot"] == (Axis.COLUMN,)


def test_without_memory_there_is_no_state_and_further_fields_come_last() -> None:
    layout = window_layout(shapes(recurrent=False), R, N, [Field("moments", (2,), "float64")])
    names = [field.name for field in layout.fields]
    assert "state.h" not in names
    assert names[-2:] == ["probability", "moments"]


def test_wish_for_windows_has_a_priority_for_each() -> None:
    assert {field.name: (field.shape, field.dtype) for field in draws_layout(N).fields} == {
        "slot": ((N,), "int64"),
        "generation": ((N,), "int64"),
        "priority": ((N,), "float32"),
    }


def test_headers_leave_the_channel_its_places() -> None:
    for header in (WindowHeader, DrawHeader):
        assert not {place.value for place in header} & {place.value for place in Header}


def test_records_of_a_window_are_those_before_those_trained_and_those_after() -> None:
    assert WindowShape(80, burn_in_steps=40, after=4, stride=40).records == 124
