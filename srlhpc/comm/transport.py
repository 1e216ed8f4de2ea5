"""The links of one rank: in process where both ends are here, in shared memory or over MPI otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from srlhpc.comm.channel import Inbox, Link, Message, Outbox, Transport
from srlhpc.comm.node.transport import NodeTransport
from srlhpc.data.layout import Layout


class RankTransport(Transport):
    """Chooses the way of every link by where its ends are.

    Args:
        rank: this rank.
        rank_of: address of every role to its rank.
        local: carries what stays here.
        remote: carries the rest; None where there are no other ranks.
        node: carries the links that it knows of, to ranks that share memory with this one.
    """

    def __init__(
        self,
        rank: int,
        rank_of: Mapping[int, int],
        local: Transport,
        remote: Transport | None,
        node: NodeTransport | None = None,
    ) -> None:
        self._node = node
        self._rank = rank
        self._rank_of = rank_of
        self._local = local
        self._remote = remote

    def outbox(self, link: Link, layout: Layout, *, slots: int, synchronous: bool = True) -> Outbox:
        assert self._rank_of[link.source] == self._rank, f"{link} does not start on rank {self._rank}"
        return self._way(link).outbox(link, layout, slots=slots, synchronous=synchronous)

    def inbox(self, links: Sequence[Link], layout: Layout, *, pool: int | None = None) -> Inbox:
        ways: dict[int, tuple[Transport, list[int]]] = {}
        for place, link in enumerate(links):
            assert self._rank_of[link.destination] == self._rank, f"{link} does not end on rank {self._rank}"
            way = self._way(link)
            ways.setdefault(id(way), (way, []))[1].append(place)
        is_plain = len(ways) == 1
        assert is_plain or id(self._local) not in ways, (
            "an inbox takes links from this rank or from others, not both: make two"
        )
        parts = [(way.inbox([links[p] for p in places], layout, pool=pool), places) for way, places in ways.values()]
        return parts[0][0] if is_plain else _MergedInbox(parts)

    def close(self) -> None:
        self._local.close()
        if self._remote is not None:
            self._remote.close()

    def _way(self, link: Link) -> Transport:
        if self._rank_of[link.source] == self._rank_of[link.destination]:
            return self._local
        if self._node is not None and self._node.carries(link):
            return self._node
        assert self._remote is not None, f"{link} leaves the only rank"
        return self._remote


class _MergedInbox(Inbox):
    """Rows whose links come in different ways, as one inbox. Of several messages that are here, those of the first way
    are taken first.

    Args:
        parts: an inbox for each way, and the places of its links among all.
    """

    def __init__(self, parts: Sequence[tuple[Inbox, Sequence[int]]]) -> None:
        self._parts = parts
        self._taken: dict[int, tuple[Inbox, Message]] = {}

    def poll(self) -> bool:
        # All are polled: `any` of a generator would leave out those behind the first.
        arrived = [part.poll() for part, _ in self._parts]
        return any(arrived)

    def take(self) -> Message | None:
        for part, places in self._parts:
            message = part.take()
            if message is not None:
                place = places[message.slot]
                self._taken[place] = (part, message)
                return replace(message, slot=place)
        return None

    def release(self, message: Message) -> None:
        part, own = self._taken.pop(message.slot)
        part.release(own)

    def forget(self, sender: int) -> None:
        for part, _ in self._parts:
            part.forget(sender)

    @property
    def is_finished(self) -> bool:
        return all(part.is_finished for part, _ in self._parts)

    def close(self) -> None:
        for part, _ in self._parts:
            part.close()
