"""The fields of records, and the layouts of blocks, inference requests and replies of one policy.

`record_fields` declares every array of a record, when it is written and how many entries it has; nothing else names
them all. Layouts follow from it here, recorders (roles/acting/recorder.py), batches (roles/training/staging.py) and
what a rule gets (algorithms/algorithm.py) elsewhere.

Letters: T records of a fragment (burn-in included), E environments of a group, A agents of the policy in one
environment (a block holds the trained ones only), M action mask size, C chunks of a fragment.

| field | block | request | reply |
|---|---|---|---|
| `obs.KEY` | `[T + 1, E, A, ...]` | `[E, A, ...]` | |
| `obs.KEY`, a stack of n frames | `[T + n, E, A, ...]`: each once (data/stacks.py) | `[E, A, n, ...]` | |
| `new_stacks`, only with stacks | `[T + 1, E, A]` bool | | |
| `first` | `[T + 1, E, A]` bool | `[E, A]` | |
| `valid`, `alive` | `[T, E, A]` bool | `alive` `[E, A]` | |
| `action_masks` | `[T + 1, E, A, M]` bool | `[E, A, M]` | |
| `actions` | `[T, E, A, ...]` | | `[E, A, ...]` |
| `log_probs` | `[T, E, A]` float32 | | `[E, A]` |
| `rewards` | `[T, E, A]` float32 | | |
| `terminated`, `truncated` | `[T, E, A]` bool | | |
| `versions` | `[T]` int64 | | in the header |
| `out.NAME` | `[T, E, A, ...]` | | `[E, A, ...]` |
| what a rule declares | `[T, E, A, ...]`, with a bootstrap `[T + 1, E, A, ...]` | | |
| `state.NAME` | `[E, A, ...]`, before t = 0 | | after this step, if wanted |
| `chunk_state.NAME` | `[C - 1, E, A, ...]`, before the other chunks | | |
| `final_state.NAME` | `[E, A, ...]`, before the bootstrap | | |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from typing import Any

from srlhpc.data.layout import Array, Axis, Field, Layout
from srlhpc.environment import ArraySpec, Kind, Stack
from srlhpc.specs.contracts import RecordField

OBSERVATION = "obs."
OUTPUT = "out."
STATE = "state."
"""Prefix of the names of a recurrent state before t = 0."""
CHUNK_STATE = "chunk_state."
"""Prefix of the names of a recurrent state before the other chunks."""
FINAL_STATE = "final_state."
"""Prefix of the names of a recurrent state before the bootstrap."""
NEW_STACKS = "new_stacks"
"""Name of the field that says where stacks of frames begin anew; what is made of blocks holds whole stacks instead."""

_COLUMN = (Axis.ENVIRONMENT, Axis.AGENT)
_NUMBER = ArraySpec((), "float32")
_FLAG = ArraySpec((), "bool")


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
    fields: tuple[RecordField, ...] = ()
    """Further fields that the policy's learning rule declares."""


def record_fields(shapes: PolicyShapes) -> tuple[RecordField, ...]:
    """Every array of a record, in the order in which they lie in a block."""
    return (*_fields_of_every_rule(shapes), *shapes.fields)


def _fields_of_every_rule(shapes: PolicyShapes) -> Iterator[RecordField]:
    kind = shapes.kind
    for key, array in kind.observations.items():
        yield _acted_on(OBSERVATION + key, array, _observation(key), kind.stacks.get(key))
    if kind.stacks:
        yield RecordField(NEW_STACKS, _FLAG, "seen", attrgetter("new_stacks"), has_bootstrap=True)
    yield _acted_on("first", _FLAG, attrgetter("first"))
    if kind.has_action_masks:
        masks = ArraySpec((kind.actions.mask_size,), "bool")
        yield _acted_on("action_masks", masks, attrgetter("action_masks"))
    yield RecordField("actions", kind.actions.array, "replied", _replied("actions"))
    yield RecordField("log_probs", _NUMBER, "replied", _replied("log_probs"))
    yield RecordField("rewards", _NUMBER, "stepped", attrgetter("rewards"))
    yield RecordField("terminated", _FLAG, "stepped", attrgetter("terminated"))
    yield RecordField("truncated", _FLAG, "stepped", attrgetter("truncated"))
    yield RecordField("valid", _FLAG, "seen", attrgetter("valid"))
    yield RecordField("alive", _FLAG, "seen", attrgetter("alive"), in_request=True)
    yield RecordField("versions", ArraySpec((), "int64"), "replied", _version, has_agents=False)
    for name, array in shapes.outputs.items():
        yield RecordField(OUTPUT + name, array, "replied", _replied(OUTPUT + name))


def _acted_on(name: str, array: ArraySpec, value: Callable[[Any], Array], stack: Stack | None = None) -> RecordField:
    """What acting needs at every record, and at the bootstrap observation."""
    return RecordField(name, array, "seen", value, has_bootstrap=True, in_request=True, stack=stack)


def _observation(key: str) -> Callable[[Any], Array]:
    return lambda step: step.observations[key]


def _replied(name: str) -> Callable[[Any], Array]:
    return lambda reply: reply.fields[name]


def _version(reply: Any) -> Any:
    return reply.header[ReplyHeader.VERSION]


def block_layout(shapes: PolicyShapes, records: int, num_environments: int, agents: int, chunks: int = 1) -> Layout:
    """A block of fragments of `records` records, in `chunks` chunks, for `agents` trained agents of each
    environment."""
    # The state before the first chunk is the fragment's.
    sizes = {Axis.ENVIRONMENT: num_environments, Axis.AGENT: agents, Axis.CHUNK: chunks - 1}

    def fields() -> Iterator[Field]:
        for item in record_fields(shapes):
            axes = (Axis.RECORD, *_COLUMN) if item.has_agents else (Axis.RECORD,)
            entries = item.earlier + records + item.has_bootstrap
            yield _field(item.name, item.entry, axes, sizes | {Axis.RECORD: entries}, item.stack)
        yield from _states(STATE, shapes, _COLUMN, sizes)
        if chunks > 1:
            yield from _states(CHUNK_STATE, shapes, (Axis.CHUNK, *_COLUMN), sizes)
        yield from _states(FINAL_STATE, shapes, _COLUMN, sizes)

    return Layout.of(fields())


def _field(
    name: str, array: ArraySpec, axes: tuple[Axis, ...], sizes: Mapping[Axis, int], stack: Stack | None = None
) -> Field:
    return Field(name, (*(sizes[axis] for axis in axes), *array.shape), array.dtype, axes, stack)


def _states(prefix: str, shapes: PolicyShapes, axes: tuple[Axis, ...], sizes: Mapping[Axis, int]) -> Iterator[Field]:
    for name, array in shapes.state.items():
        yield _field(prefix + name, array, axes, sizes)


def request_layout(shapes: PolicyShapes, num_environments: int, agents: int) -> Layout:
    """What a group asks its policy server at one record."""
    sizes = {Axis.ENVIRONMENT: num_environments, Axis.AGENT: agents}
    asked = (item for item in record_fields(shapes) if item.in_request)
    return Layout.of(_field(item.name, item.array, _COLUMN, sizes) for item in asked)


def reply_layout(shapes: PolicyShapes, num_environments: int, agents: int) -> Layout:
    """What the policy server answers."""
    sizes = {Axis.ENVIRONMENT: num_environments, Axis.AGENT: agents}

    def fields() -> Iterator[Field]:
        for item in record_fields(shapes):
            if item.written == "replied" and item.has_agents:
                yield _field(item.name, item.array, _COLUMN, sizes)
        yield from _states(STATE, shapes, _COLUMN, sizes)

    return Layout.of(fields())
