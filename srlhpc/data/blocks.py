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
| `valid` | `[T, E, A]` bool | | |
| `alive` | `[T, E, A]` bool, of joint columns and where agents take turns `[T + 1, E, A]` | `[E, A]` | |
| `action_masks` | `[T + 1, E, A, M]` bool | `[E, A, M]` | |
| `actions` | `[T, E, A, ...]` | | `[E, A, ...]` |
| `log_probs` | `[T, E, A]` float32 | | `[E, A]` |
| `rewards` | `[T, E, A]` float32 | | |
| `terminated`, `truncated` | `[T, E, A]` bool | | |
| `versions` | `[T]` int64 | | in the header |
| `out.NAME` | `[T, E, A, ...]` | | `[E, A, ...]` |
| `players`, only in matches (data/matches.py) | | `[E]` int64 | |
| `environment_state`, only with joint columns | `[T + 1, E, ...]` | | |
| what a rule declares | `[T, E, A, ...]`, with a bootstrap `[T + 1, E, A, ...]` | | |
| `state.NAME` | `[E, A, ...]`, before t = 0 | | after this step, if wanted |
| `chunk_state.NAME` | `[C - 1, E, A, ...]`, before the other chunks | | |
| `final_state.NAME` | `[E, A, ...]`, before the bootstrap | | |

Where agents take turns, `alive` is false of those that wait, too: it says whose row is computed.

A column, of which a window or a batch has some side by side, is one agent of one environment, or with joint columns all
of an environment, whose axis A belongs to each entry then. Their stacks of frames are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from typing import Any

from srlhpc.data.layout import Array, Axis, Field, Layout
from srlhpc.data.matches import PLAYERS
from srlhpc.environment import ArraySpec, Kind, Stack
from srlhpc.specs.contracts import Holder, RecordField

OBSERVATION = "obs."
OUTPUT = "out."
STATE = "state."
"""Prefix of the names of a recurrent state before t = 0."""
CHUNK_STATE = "chunk_state."
"""Prefix of the names of a recurrent state before the other chunks."""
FINAL_STATE = "final_state."
"""Prefix of the names of a recurrent state before the bootstrap."""
ENVIRONMENT_STATE = "environment_state"
"""Name of the field that holds the state of a whole environment, where it gives one."""
NEW_STACKS = "new_stacks"
"""Name of the field that says where stacks of frames begin anew; windows and batches have whole stacks instead."""

_AGENTS = (Axis.ENVIRONMENT, Axis.AGENT)
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
    joint_agents: int | None = None
    """Agents of an environment that are one column together; None: each is a column."""

    @property
    def column_axes(self) -> tuple[Axis, ...]:
        """What the columns of a block count."""
        return _AGENTS if self.joint_agents is None else (Axis.ENVIRONMENT,)

    def entry(self, array: ArraySpec, of: Holder = "agent") -> ArraySpec:
        """What one column's record holds of an array that each `of` has once: of agents, all that are in the column."""
        if self.joint_agents is None or of != "agent":
            return array
        return ArraySpec((self.joint_agents, *array.shape), array.dtype)


def record_fields(shapes: PolicyShapes) -> tuple[RecordField, ...]:
    """Every array of a record, in the order in which they lie in a block."""
    return (*_fields_of_every_rule(shapes), *shapes.fields)


def _fields_of_every_rule(shapes: PolicyShapes) -> Iterator[RecordField]:
    kind, is_joint = shapes.kind, shapes.joint_agents is not None
    stacks = {} if is_joint else kind.stacks
    for key, array in kind.observations.items():
        yield _acted_on(OBSERVATION + key, array, _observation(key), stacks.get(key))
    if stacks:
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
    is_followed = is_joint or kind.takes_turns
    yield RecordField("alive", _FLAG, "seen", attrgetter("asked"), has_bootstrap=is_followed, in_request=True)
    if is_joint and kind.state is not None:
        state = attrgetter("state")
        yield RecordField(ENVIRONMENT_STATE, kind.state, "seen", state, has_bootstrap=True, of="environment")
    yield RecordField("versions", ArraySpec((), "int64"), "replied", _version, of="group")
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
    assert shapes.joint_agents in (None, agents)
    columns = shapes.column_axes
    held_by = {"agent": columns, "environment": (Axis.ENVIRONMENT,), "group": ()}

    def fields() -> Iterator[Field]:
        for item in record_fields(shapes):
            axes = (Axis.RECORD, *held_by[item.of])
            entries = item.earlier + records + item.has_bootstrap
            entry = shapes.entry(item.entry, item.of)
            yield _field(item.name, entry, axes, sizes | {Axis.RECORD: entries}, item.stack)
        yield from states(STATE, columns)
        if chunks > 1:
            yield from states(CHUNK_STATE, (Axis.CHUNK, *columns))
        yield from states(FINAL_STATE, columns)

    def states(prefix: str, axes: tuple[Axis, ...]) -> Iterator[Field]:
        for name, array in shapes.state.items():
            yield _field(prefix + name, shapes.entry(array), axes, sizes)

    return Layout.of(fields())


def _field(
    name: str, array: ArraySpec, axes: tuple[Axis, ...], sizes: Mapping[Axis, int], stack: Stack | None = None
) -> Field:
    return Field(name, (*(sizes[axis] for axis in axes), *array.shape), array.dtype, axes, stack)


def request_layout(shapes: PolicyShapes, num_environments: int, agents: int, *, has_players: bool = False) -> Layout:
    """What a group asks its policy server at one record; in matches `has_players`: who plays each environment."""
    sizes = {Axis.ENVIRONMENT: num_environments, Axis.AGENT: agents}

    def fields() -> Iterator[Field]:
        for item in record_fields(shapes):
            if item.in_request:
                yield _field(item.name, item.array, _AGENTS, sizes)
        if has_players:
            yield _field(PLAYERS, ArraySpec((), "int64"), (Axis.ENVIRONMENT,), sizes)

    return Layout.of(fields())


def reply_layout(shapes: PolicyShapes, num_environments: int, agents: int) -> Layout:
    """What the policy server answers."""
    sizes = {Axis.ENVIRONMENT: num_environments, Axis.AGENT: agents}

    def fields() -> Iterator[Field]:
        for item in record_fields(shapes):
            if item.written == "replied" and item.of == "agent":
                yield _field(item.name, item.array, _AGENTS, sizes)
        for name, array in shapes.state.items():
            yield _field(STATE + name, array, _AGENTS, sizes)

    return Layout.of(fields())
