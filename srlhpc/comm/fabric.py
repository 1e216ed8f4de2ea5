"""The links of one rank: in process where both ends are here, over MPI otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from srlhpc.comm.channel import Fabric, Inbox, Link, Outbox
from srlhpc.comm.node_fabric import NodeFabric
from srlhpc.data.layout import Layout


class RankFabric(Fabric):
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
        local: Fabric,
        remote: Fabric | None,
        node: NodeFabric | None = None,
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
        ways = {id(way): way for way in map(self._way, links)}
        assert len(ways) == 1, "an inbox takes links from this rank or from others, not both: make two"
        for link in links:
            assert self._rank_of[link.destination] == self._rank, f"{link} does not end on rank {self._rank}"
        return next(iter(ways.values())).inbox(links, layout, pool=pool)

    def close(self) -> None:
        self._local.close()
        if self._remote is not None:
            self._remote.close()

    def _way(self, link: Link) -> Fabric:
        if self._rank_of[link.source] == self._rank_of[link.destination]:
            return self._local
        if self._node is not None and self._node.carries(link):
            return self._node
        assert self._remote is not None, f"{link} leaves the only rank"
        return self._remote
