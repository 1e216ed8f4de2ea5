"""A group of an actor over in-process links, with a server and a trainer that a test moves by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.acquisition import Holding
from srlhpc.comm.channel import Inbox, Link, Outbox, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.protocol import HEADER_ONLY, GrantHeader
from srlhpc.data.blocks import (
    PolicyShapes,
    ReplyHeader,
    RequestHeader,
    block_layout,
    record_fields,
    reply_layout,
    request_layout,
)
from srlhpc.environment import ArraySpec, Environment
from srlhpc.roles.acting.actor import Actor
from srlhpc.roles.acting.group import Group
from srlhpc.roles.acting.recorder import SeatChannels, SeatRecorder

ACTOR, SERVER, TRAINER = 0, 1, 2
Array = NDArray[Any]


@dataclass(frozen=True)
class Block:
    """A copy of what the trainer got."""

    header: list[int]
    fields: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.fields[name]


@dataclass
class Seat:
    """One policy of the group, and the other ends of its links.

    The server's recurrent state counts the requests since `first`; its value is the number of its request, its actions
    cycle, its log-probability is minus the request's number.
    """

    kind: str
    recorder: SeatRecorder
    requests: Inbox
    replies: Outbox
    blocks_inbox: Inbox | None
    grant_requests: Inbox | None
    grants: Outbox | None
    state: Array
    version: int = 0
    served: int = 0
    blocks: list[Block] = field(default_factory=list)
    seen: list[Mapping[str, Array]] = field(default_factory=list)
    headers: list[list[int]] = field(default_factory=list)
    held: list[Holding] = field(default_factory=list)
    """What the group said it held, with each request that was granted."""

    def serve(self) -> bool:
        """Answers a request if one is here."""
        self.requests.poll()
        request = self.requests.take()
        if request is None:
            return False
        self.seen.append({name: array.copy() for name, array in request.fields.items()})
        self.headers.append(request.header.tolist())
        reply = self.replies.acquire()
        assert reply is not None
        self.state = np.where(request.fields["first"], 0, self.state) + 1
        reply.fields["actions"][...] = self.served % 4
        reply.fields["log_probs"][...] = -self.served
        reply.fields["out.value"][...] = self.served
        if "state.h" in reply.fields:
            reply.fields["state.h"][..., 0] = self.state
        reply.header[ReplyHeader.VERSION] = self.version
        reply.header[ReplyHeader.HAS_STATE] = request.header[RequestHeader.WANT_STATE]
        self.requests.release(request)
        self.replies.send(reply)
        self.served += 1
        return True

    def collect(self) -> None:
        """Takes in all blocks."""
        assert self.blocks_inbox is not None
        self.blocks_inbox.poll()
        while (block := self.blocks_inbox.take()) is not None:
            fields = {name: array.copy() for name, array in block.fields.items()}
            self.blocks.append(Block(block.header.tolist(), fields))
            self.blocks_inbox.release(block)

    def grant(self, version: int) -> bool:
        """Grants what was asked for."""
        assert self.grant_requests is not None
        assert self.grants is not None
        self.grant_requests.poll()
        asked = self.grant_requests.take()
        if asked is None:
            return False
        self.held.append(Holding(int(asked.header[GrantHeader.HOLDING])))
        self.grant_requests.release(asked)
        grant = self.grants.acquire()
        assert grant is not None
        grant.header[GrantHeader.NEEDS_VERSION] = version
        self.grants.send(grant)
        return True


class Play:
    """One actor with one group.

    Args:
        environment: what is played.
        seats: policy to the settings of its seat, see `seat`.
    """

    def __init__(self, environment: Environment, **seats: Mapping[str, Any]) -> None:
        self.environment = environment
        self.transport = InProcessTransport()
        self.seats = {name: self._seat(index, **chosen) for index, (name, chosen) in enumerate(seats.items())}
        recorders = {name: (seat.kind, seat.recorder) for name, seat in self.seats.items()}
        self.group = Group(7, environment, recorders, seed=lambda start: start)
        self.actor = Actor(
            "actor-0",
            [self.group],
            where="environment x on rank 3 (actor-0)",
            episode_summary=lambda _, episode: summary(episode),
        )
        self.actor.start(0)

    @property
    def only(self) -> Seat:
        (seat,) = self.seats.values()
        return seat

    def run(self, steps: int, *, collects: bool = True) -> None:
        """Until the environment has made so many more steps."""
        target = self.group.steps + steps
        for _ in range(3 * steps + 3):
            self.actor.poll()
            for seat in self.seats.values():
                if seat.blocks_inbox is not None and collects:
                    seat.collect()
            if self.group.steps >= target:
                return
            for seat in self.seats.values():
                seat.serve()
        raise AssertionError(f"the group made {self.group.steps} steps, not {target}")

    def _seat(
        self,
        index: int,
        *,
        kind: str = "agent",
        agents: Sequence[int] = (0,),
        trained: Sequence[int] | None = None,
        records: int = 4,
        burn_in: int = 0,
        chunks: int = 1,
        recurrent: bool = False,
        strict: bool = False,
    ) -> Seat:
        trained = tuple(range(len(agents))) if trained is None else tuple(trained)
        shape = self.environment.spaces.kind(kind)
        state = {"h": ArraySpec((1,), "float32")} if recurrent else {}
        shapes = PolicyShapes(shape, state, {"value": ArraySpec((), "float32")})
        num_environments = self.environment.num_environments
        request, reply = (
            request_layout(shapes, num_environments, len(agents)),
            reply_layout(shapes, num_environments, len(agents)),
        )
        ways = {stream: self._link(stream, index) for stream in Stream}
        transport = self.transport
        channels = SeatChannels(
            transport.outbox(ways[Stream.REQUESTS], request, slots=1),
            transport.inbox([ways[Stream.REPLIES]], reply),
            None,
        )
        blocks = None
        if trained:
            block = block_layout(shapes, records, num_environments, len(trained), chunks)
            channels.blocks = transport.outbox(ways[Stream.BLOCKS], block, slots=2)
            blocks = transport.inbox([ways[Stream.BLOCKS]], block, pool=1)
        if strict:
            channels.grant_requests = transport.outbox(ways[Stream.GRANT_REQUESTS], HEADER_ONLY, slots=1)
            channels.grants = transport.inbox([ways[Stream.GRANTS]], HEADER_ONLY)
        recorder = SeatRecorder(
            7, channels, agents=tuple(agents), trained=trained, kind_agents=len(shape.agents), records=records,
            burn_in=burn_in, chunks=chunks, fields=record_fields(shapes), recurrent=recurrent,
        )  # fmt: skip
        return Seat(
            kind,
            recorder,
            transport.inbox([ways[Stream.REQUESTS]], request),
            transport.outbox(ways[Stream.REPLIES], reply, slots=2),
            blocks,
            transport.inbox([ways[Stream.GRANT_REQUESTS]], HEADER_ONLY) if strict else None,
            transport.outbox(ways[Stream.GRANTS], HEADER_ONLY, slots=2) if strict else None,
            np.zeros((num_environments, len(agents)), np.float32),
        )

    def _link(self, stream: Stream, index: int) -> Link:
        other = SERVER if stream in (Stream.REQUESTS, Stream.REPLIES) else TRAINER
        comes = stream in (Stream.REPLIES, Stream.GRANTS)
        return Link(stream, other, ACTOR, index) if comes else Link(stream, ACTOR, other, index)


def summary(episode: Any) -> dict[str, Any]:
    return {"return": sum(episode.returns.values()), "steps": episode.steps, "policies": {}, "metrics": {}}


def column(array: Array, env: int = 0, agent: int = 0) -> list[Any]:
    """One agent of one environment over time."""
    values: list[Any] = array[:, env, agent].tolist()
    return values


def times(block: Block, env: int = 0, agent: int = 0) -> list[tuple[int, int]]:
    """(episode, time) that a scripted environment showed at each record, the bootstrap included."""
    return [(int(episode) - 1, int(time) - 1) for episode, time, _ in column(block["obs.obs"], env, agent)]
