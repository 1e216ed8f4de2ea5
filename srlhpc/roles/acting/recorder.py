"""One group of an actor's ring: E environments and the open fragments of every policy in them.

Letters: T records of a fragment (burn-in included), E environments, A agents of a policy in one environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.acquisition import Holding
from srlhpc.comm.channel import Inbox, Message, Outbox
from srlhpc.comm.protocol import GrantHeader
from srlhpc.data.blocks import CHUNK_STATE, FINAL_STATE, NEW_STACKS, STATE, BlockHeader, ReplyHeader, RequestHeader
from srlhpc.data.layout import prefixed
from srlhpc.data.matches import PLAYERS
from srlhpc.data.stacks import build_stack, own_frames
from srlhpc.environment import KindStep
from srlhpc.specs.contracts import Holder, RecordField

Array = NDArray[Any]
_Place = slice | list[int]
_Places = Mapping[Holder, tuple[_Place, ...]]
"""Which of the values of agents, environments or the group are meant."""
_Sources = tuple[tuple[str, Callable[[Any], Array], tuple[_Place, ...]], ...]
"""Names of fields, what gives their values, and which of these are meant."""


@dataclass
class SeatChannels:
    """The links of one group and policy."""

    requests: Outbox
    replies: Inbox
    blocks: Outbox | None
    """None: the policy is not trained on these agents."""
    grant_requests: Outbox | None = None
    grants: Inbox | None = None
    """None: its fragments start without a grant, or with that of another seat of the policy in the group."""


class SeatRecorder:
    """What one policy sees and does in one group: asks for actions and fills fragments.

    A fragment's life: closed -> (grant asked, granted) -> open, T records -> sent. Each of the record's `fields` says
    when it is written: before the action, with the reply or after the step.
    """

    def __init__(
        self,
        group: int,
        channels: SeatChannels,
        *,
        agents: tuple[int, ...],
        trained: tuple[int, ...],
        kind_agents: int,
        records: int,
        burn_in: int,
        chunks: int = 1,
        fields: Iterable[RecordField],
        recurrent: bool,
        granted_with: SeatRecorder | None = None,
        granted_blocks: int = 1,
    ) -> None:
        """`granted_with` is the recorder whose grant is for this one's fragments, too, `granted_blocks` how many
        fragments' blocks one's own is for."""
        self.channels = channels
        self._granted_with, self._granted_blocks = granted_with, granted_blocks
        self._group = group
        self._agents = _places(agents, kind_agents)
        self._trained = _places(trained, len(agents))
        self._trained_in_kind = _places(tuple(agents[i] for i in trained), kind_agents)
        self._records, self._burn_in, self._recurrent = records, burn_in, recurrent
        ends = range(records // chunks - 1, records - 1, records // chunks)
        self._chunk_ends = {t: place for place, t in enumerate(ends)}
        # After these records the state is kept: before a chunk, the bootstrap, and the next fragment's t = 0.
        self._state_records = {*ends, records - 1, records - 1 - burn_in}
        self._fields = tuple(fields)
        of_kind: _Places = {"agent": (slice(None), self._trained_in_kind), "environment": (slice(None),)}
        self._seen = _sources((f for f in self._fields if f.written == "seen" and f.stack is None), of_kind)
        self._stacks = [(f, f.stack) for f in self._fields if f.stack is not None]
        played: _Places = {"agent": (slice(None), self._agents)}
        replied: _Places = {"agent": (slice(None), self._trained), "group": ()}
        self._in_request = _sources((f for f in self._fields if f.in_request), played)
        self._replied = _sources((f for f in self._fields if f.written == "replied"), replied)
        self._stepped = _sources((f for f in self._fields if f.written == "stepped"), of_kind)
        self._bootstrap = _sources((f for f in self._fields if f.has_bootstrap and f.stack is None), of_kind)
        self._trains = channels.blocks is not None
        self._block: Message | None = None
        self._t = 0
        self._sequence = 0
        self._needs_version = 0
        self._granted = channels.grants is None
        self._asked = False
        self._tail: dict[str, Array] | None = None
        self._start_state: dict[str, Array] = {}
        self._next_start_state: dict[str, Array] = {}
        self._reply: Message | None = None

    # --- before the action ---------------------------------------------------------------------------------------

    @property
    def fragment_steps(self) -> int:
        """Environment steps from a fragment's start to its end."""
        return self._records - self._burn_in

    @property
    def is_ready(self) -> bool:
        """Whether a record can be written: a fragment is open, or nothing is recorded."""
        return not self._trains or self._block is not None

    @property
    def is_granted(self) -> bool:
        """Whether the next fragment has its grant, or needs none."""
        return self._granted

    @property
    def holds(self) -> bool:
        """Whether it has a grant, or a fragment that was started with one."""
        return self.channels.grants is not None and self._granted

    def open(self, held: Holding = Holding.NOTHING) -> bool:
        """Makes sure that there is an open fragment; false while a grant or a free slot is missing.

        `held` by the group's other recorders; sent with the request for a grant.
        """
        if self.is_ready:
            return True
        if not self._granted and not self._ask_for_grant(held):
            return False
        assert self.channels.blocks is not None
        block = self.channels.blocks.acquire()
        if block is None:
            return False
        self._begin(block)
        return True

    def _ask_for_grant(self, held: Holding) -> bool:
        requests, grants = self.channels.grant_requests, self.channels.grants
        assert requests is not None
        assert grants is not None
        if not self._asked:
            message = requests.acquire()
            if message is None:
                return False
            message.header[GrantHeader.GROUP] = self._group
            message.header[GrantHeader.HOLDING] = held
            message.header[GrantHeader.BLOCKS] = self._granted_blocks
            requests.send(message)
            self._asked = True
        grants.poll()
        grant = grants.take()
        if grant is None:
            return False
        self._needs_version = int(grant.header[GrantHeader.NEEDS_VERSION])
        grants.release(grant)
        self._granted, self._asked = True, False
        return True

    def _begin(self, block: Message) -> None:
        fields = block.fields
        if self._burn_in:
            if self._tail is None:
                # No records come before the first fragment: its burn-in is zeros, which count in nothing.
                for array in fields.values():
                    array[...] = 0
            else:
                for name, part in self._tail.items():
                    fields[name][: len(part)] = part
                # They were trained in the fragment before.
                fields["valid"][: self._burn_in] = False
        for name, view in prefixed(fields, STATE).items():
            view[...] = self._start_state[name][:, self._trained] if self._start_state else 0
        self._block, self._t = block, self._burn_in

    @property
    def needs_version(self) -> int:
        """The least version whose actions the open fragment takes."""
        return self._needs_version if self._granted_with is None else self._granted_with.needs_version

    def ask(self, step: KindStep, players: Array | None = None) -> None:
        """Writes the first half of the record and asks for its actions; `players`, in matches, are `[E]` int64."""
        self.see(step)
        request = self.channels.requests.acquire()
        assert request is not None, "one request is outstanding at most, so its slot is free"
        for name, value, places in self._in_request:
            request.fields[name][...] = value(step)[places]
        if players is not None:
            request.fields[PLAYERS][...] = players
        header = request.header
        header[RequestHeader.GROUP] = self._group
        header[RequestHeader.NEEDS_VERSION] = self.needs_version
        header[RequestHeader.WANT_STATE] = self._trains and self._recurrent and self._t in self._state_records
        self.channels.requests.send(request)

    def see(self, step: KindStep) -> None:
        """Writes the first half of the record."""
        if self._block is not None:
            self._write(self._block.fields, self._seen, step)
            self._write_stacks(self._block.fields, step)

    def _write_stacks(self, fields: Mapping[str, Array], step: KindStep) -> None:
        """Writes the newest frames, at the block's first record whole stacks.

        The first record behind burn-in that nothing came before needs no older frames: there stacks begin anew.
        """
        for field, stack in self._stacks:
            # Frames before agents: where not all of these are trained, choosing them copies.
            seen, frames = np.moveaxis(field.value(step), 2, 0), fields[field.name]
            if self._t == 0:
                frames[: stack.frames] = seen[:, :, self._trained_in_kind]
            else:
                frames[self._t + stack.frames - 1] = seen[-1][:, self._trained_in_kind]

    def _write(self, fields: Mapping[str, Array], sources: _Sources, step: KindStep) -> None:
        for name, value, places in sources:
            fields[name][self._t] = value(step)[places]

    # --- the action ----------------------------------------------------------------------------------------------

    def replied(self) -> bool:
        """Whether the reply is here."""
        if self._reply is None:
            self.channels.replies.poll()
            self._reply = self.channels.replies.take()
        if self.channels.blocks is not None:
            # Replies may come without MPI, and a block under way moves only while its sender calls MPI.
            self.channels.blocks.poll()
        return self._reply is not None

    def act(self, actions: Array) -> None:
        """Writes the replied actions into the kind's action array and into the record."""
        reply = self._reply
        assert reply is not None
        actions[:, self._agents] = reply.fields["actions"]
        if self._block is not None:
            self._write_reply(self._block.fields, reply)
        if reply.header[ReplyHeader.HAS_STATE]:
            self._keep_state(prefixed(reply.fields, STATE))
        self.drop_reply()

    def drop_reply(self) -> None:
        """Gives back the reply that is here."""
        assert self._reply is not None
        self.channels.replies.release(self._reply)
        self._reply = None

    def _write_reply(self, fields: Mapping[str, Array], reply: Message) -> None:
        for name, value, places in self._replied:
            fields[name][self._t] = value(reply)[places]

    def _keep_state(self, state: Mapping[str, Array]) -> None:
        if self._t == self._records - 1 - self._burn_in:
            self._next_start_state = {name: view.copy() for name, view in state.items()}
        if self._block is None:
            return
        if self._t == self._records - 1:
            for name, view in state.items():
                self._block.fields[FINAL_STATE + name][...] = view[:, self._trained]
        elif self._t in self._chunk_ends:
            for name, view in state.items():
                self._block.fields[CHUNK_STATE + name][self._chunk_ends[self._t]] = view[:, self._trained]

    # --- after the step ------------------------------------------------------------------------------------------

    def finish_record(self, step: KindStep) -> None:
        """Writes the second half of the record; sends the block when it is full."""
        if self._block is None:
            return
        fields = self._block.fields
        self._write(fields, self._stepped, step)
        self._t += 1
        if self._t == self._records:
            self._write(fields, self._bootstrap, step)
            self._write_stacks(fields, step)
            self._send(self._block)

    def _send(self, block: Message) -> None:
        fields, burn_in = block.fields, self._burn_in
        if burn_in:
            self._tail = self._last(fields, burn_in)
        self._start_state = self._next_start_state
        valid, header = fields["valid"], block.header
        header[BlockHeader.GROUP] = self._group
        header[BlockHeader.SEQUENCE] = self._sequence
        header[BlockHeader.VALID] = np.count_nonzero(valid)
        header[BlockHeader.STEPS] = np.count_nonzero(valid.any(axis=2))
        # Burn-in is not trained, so it may be older.
        header[BlockHeader.OLDEST_VERSION] = fields["versions"][burn_in:].min()
        header[BlockHeader.TRAINED_FROM] = burn_in
        assert self.channels.blocks is not None
        self.channels.blocks.send(block)
        self._sequence += 1
        self._block = None
        self._granted = self.channels.grants is None

    def _last(self, fields: Mapping[str, Array], count: int) -> dict[str, Array]:
        """The last records of the block."""
        start = self._records - count
        last = {field.name: fields[field.name][start : self._records + field.earlier].copy() for field in self._fields}
        # A stack that began just before would be filled from what lies before it, which is no longer there.
        for field, stack in self._stacks:
            own = own_frames(fields[NEW_STACKS][: start + 1])[-1]
            first = last[field.name][: stack.frames]
            first[...] = build_stack(first, own, stack)
        return last

    # --- ending and resuming -------------------------------------------------------------------------------------

    def end(self) -> bool:
        """Drops the open fragment and sends LAST; false while there is no room for it."""
        said = self.channels.requests.send_last()
        if self.channels.blocks is not None:
            said &= self.channels.blocks.send_last()
        return said

    def start_over(self) -> None:
        """Forgets what came before: the open fragment, or else the next, starts anew with new episodes.

        A skipped number says that nothing follows to the fragment before, if there is one.
        """
        self._sequence += self._sequence > 0
        self._tail, self._start_state, self._next_start_state = None, {}, {}
        if self._block is not None:
            self._begin(self._block)

    def save_state(self) -> dict[str, Any]:
        """The whole records of the fragment under way included. A reply that is here is in the state of its link."""
        state = {
            "needs_version": self._needs_version,
            "sequence": self._sequence,
            "granted": self._granted,
            "asked": self._asked,
            "tail": dict(self._tail or {}),
            "start_state": dict(self._start_state),
            "next_start_state": dict(self._next_start_state),
        }
        if self._block is not None:
            written = self._written(self._block.fields)
            state["open"] = {"t": self._t, "fields": {name: part.copy() for name, part in written.items()}}
        return state

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._needs_version = int(state["needs_version"])
        self._sequence = int(state["sequence"])
        # States from when nothing was open at a checkpoint lack the following.
        self._granted = bool(state.get("granted", self._granted))
        self._asked = bool(state.get("asked", False))
        self._tail = dict(state.get("tail", {})) or None
        self._start_state = dict(state.get("start_state", {}))
        self._next_start_state = dict(state.get("next_start_state", {}))
        if "open" in state:
            self._open_again(state["open"])

    def _open_again(self, saved: Mapping[str, Any]) -> None:
        assert self.channels.blocks is not None
        block = self.channels.blocks.acquire()
        assert block is not None, "more open fragments than slots"
        self._block, self._t = block, int(saved["t"])
        for name, part in self._written(block.fields).items():
            part[...] = saved["fields"][name]

    def _written(self, fields: Mapping[str, Array]) -> dict[str, Array]:
        """What the open fragment has of each field: its whole records, and states."""
        chunks = sum(end < self._t for end in self._chunk_ends)
        parts = {field.name: fields[field.name][: self._t + field.earlier if self._t else 0] for field in self._fields}
        for name, array in fields.items():
            if name.startswith(STATE):
                parts[name] = array
            elif name.startswith(CHUNK_STATE):
                parts[name] = array[:chunks]
        return {name: part for name, part in parts.items() if part.size}


def _sources(fields: Iterable[RecordField], places: _Places) -> _Sources:
    return tuple((field.name, field.value, places[field.of]) for field in fields)


def _places(places: tuple[int, ...], size: int) -> _Place:
    """An index for the agent axis: a slice (a view, no copy) where all places are meant in order."""
    return slice(None) if places == tuple(range(size)) else list(places)
