"""The layouts of blocks, inference requests and replies of one policy.

Letters: T records of a fragment (burn-in included), E copies of a group, A agents of the policy in one copy
(a block holds the trained ones only), M action mask size, C chunks of a fragment.

| field | block | request | reply |
|---|---|---|---|
| `obs.KEY` | `[T + 1, E, A, ...]` | `[E, A, ...]` | |
| `first` | `[T + 1, E, A]` bool | `[E, A]` | |
| `valid`, `alive` | `[T, E, A]` bool | `alive` `[E, A]` | |
| `action_masks` | `[T + 1, E, A, M]` bool | `[E, A, M]` | |
| `actions` | `[T, E, A, ...]` | | `[E, A, ...]` |
| `log_probs` | `[T, E, A]` float32 | | `[E, A]` |
| `rewards` | `[T, E, A]` float32 | | |
| `terminated`, `truncated` | `[T, E, A]` bool | | |
| `versions` | `[T]` int64 | | in the header |
| `out.NAME` | `[T, E, A, ...]` | | `[E, A, ...]` |
| `state.NAME` | `[E, A, ...]`, before t = 0 | | after this step, if wanted |
| `chunk_state.NAME` | `[C - 1, E, A, ...]`, before the other chunks | | |
| `final_state.NAME` | `[E, A, ...]`, before the bootstrap | | |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from srlhpc.data.layout import Field, Layout
from srlhpc.environment import ArraySpec, Kind


class BlockHeader(IntEnum):
    """Places in the header of a block. 0 and 1 are those of every message (comm/channel.py)."""

    GROUP = 2
    SEQUENCE = 3
    VALID = 4
    STEPS = 5
    OLDEST_VERSION = 6
    TRAINED_FROM = 7


class RequestHeader(IntEnum):
    """Places in the header of an inference request."""

    GROUP = 2
    NEEDS_VERSION = 3
    WANT_STATE = 4


class ReplyHeader(IntEnum):
    """Places in the header of an inference reply."""

    GROUP = 2
    VERSION = 3
    HAS_STATE = 4


@dataclass(frozen=True)
class PolicyShapes:
    """What the layouts of a policy depend on."""

    kind: Kind
    state: Mapping[str, ArraySpec]
    outputs: Mapping[str, ArraySpec]


def block_layout(shapes: PolicyShapes, records: int, copies: int, agents: int, chunks: int = 1) -> Layout:
    """A block of fragments of `records` records, in `chunks` chunks, for `agents` trained agents of each copy."""
    T, columns = records, (copies, agents)

    def fields() -> Iterator[Field]:
        yield from _seen(shapes, (T + 1, *columns))
        action = shapes.kind.actions.array
        yield Field("actions", (T, *columns, *action.shape), action.dtype)
        for name, dtype in _RECORD_FIELDS:
            yield Field(name, (T, *columns), dtype)
        yield Field("versions", (T,), "int64")
        yield from _named("out.", shapes.outputs, (T, *columns))
        yield from _named("state.", shapes.state, columns)
        if chunks > 1:
            yield from _named("chunk_state.", shapes.state, (chunks - 1, *columns))
        yield from _named("final_state.", shapes.state, columns)

    return Layout.of(fields())


_RECORD_FIELDS = (
    ("log_probs", "float32"),
    ("rewards", "float32"),
    ("terminated", "bool"),
    ("truncated", "bool"),
    ("valid", "bool"),
    ("alive", "bool"),
)


def _seen(shapes: PolicyShapes, lead: tuple[int, ...]) -> Iterator[Field]:
    """What an agent sees before it acts."""
    yield from _named("obs.", shapes.kind.observations, lead)
    yield Field("first", lead, "bool")
    if shapes.kind.has_action_masks:
        yield Field("action_masks", (*lead, shapes.kind.actions.mask_size), "bool")


def _named(prefix: str, arrays: Mapping[str, ArraySpec], lead: tuple[int, ...]) -> Iterator[Field]:
    for name, spec in arrays.items():
        yield Field(prefix + name, (*lead, *spec.shape), spec.dtype)


def request_layout(shapes: PolicyShapes, copies: int, agents: int) -> Layout:
    """What a group asks its policy server at one record."""
    columns = (copies, agents)
    return Layout.of([*_seen(shapes, columns), Field("alive", columns, "bool")])


def reply_layout(shapes: PolicyShapes, copies: int, agents: int) -> Layout:
    """What the policy server answers."""
    columns = (copies, agents)

    def fields() -> Iterator[Field]:
        action = shapes.kind.actions.array
        yield Field("actions", (*columns, *action.shape), action.dtype)
        yield Field("log_probs", columns, "float32")
        yield from _named("out.", shapes.outputs, columns)
        yield from _named("state.", shapes.state, columns)

    return Layout.of(fields())
