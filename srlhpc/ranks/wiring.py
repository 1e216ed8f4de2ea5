"""Makes the ends of all links that a plan names; both ends are described here, side by side. Free of torch."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from srlhpc.comm.channel import Inbox, Link, Outbox, Stream, Transport
from srlhpc.comm.node.rows import SharedRows
from srlhpc.comm.protocol import CHUNK, HEADER_ONLY, TEXT
from srlhpc.plan.lag_limits import needs_grants
from srlhpc.plan.layouts import (
    block_layout,
    draws_layout,
    match_request_layout,
    matches_layout,
    reply_layout,
    request_layout,
    windows_layout,
)
from srlhpc.plan.plan import GroupSeat, Plan, RolePlan, Seat
from srlhpc.plan.replay_sizes import WINDOW_SLOTS
from srlhpc.plan.sizes import outbox_slots, pool_slots
from srlhpc.roles.acting.matches import MatchChannels
from srlhpc.roles.acting.recorder import SeatChannels

_AWAITED_SLOTS = 2
"""Slots for replies, of which one is outstanding: the one before may not have left yet."""
_REQUEST_SLOTS = 1
"""One request of a group is outstanding."""


def inference_rows(plan: Plan, here: Collection[int]) -> list[SharedRows]:
    """The inboxes of requests and replies, as `Wiring` makes them, with their links between different ranks of a node.

    Looks only at what is on the node, since there may be tens of thousands of groups elsewhere.

    Args:
        plan: of the run.
        here: ranks of the node.
    """
    if plan.spec.actors.inference.kind == "inline":
        return []
    policies = dict.fromkeys(seat.policy for seat in plan.seats)
    return [rows for policy in policies for rows in _rows_of_policy(plan, policy, here)]


def _rows_of_policy(plan: Plan, policy: str, here: Collection[int]) -> Iterator[SharedRows]:
    served: dict[int, tuple[RolePlan, list[GroupSeat]]] = {}
    for each in plan.group_seats(policy, here):
        server = plan.server_of(each.group, policy)
        if server.rank in here and server.rank != each.actor.rank:
            served.setdefault(server.address, (server, []))[1].append(each)
    if served:
        request, reply = request_layout(plan, policy), reply_layout(plan, policy)
    for server, seats in served.values():
        yield SharedRows(tuple(_request_links(plan, server, seats)), request, _REQUEST_SLOTS)
        for link in _reply_links(plan, server, seats):
            yield SharedRows((link,), reply, _AWAITED_SLOTS)


def _request_links(plan: Plan, server: RolePlan, seats: Sequence[GroupSeat]) -> list[Link]:
    return [plan.seat_link(Stream.REQUESTS, each.actor, server, each.group, each.seat) for each in seats]


def _reply_links(plan: Plan, server: RolePlan, seats: Sequence[GroupSeat]) -> list[Link]:
    return [plan.seat_link(Stream.REPLIES, server, each.actor, each.group, each.seat) for each in seats]


class Wiring:
    """The links of one rank's roles.

    Args:
        plan: of the run.
        transport: of this rank.
    """

    def __init__(self, plan: Plan, transport: Transport) -> None:
        self._plan, self._transport = plan, transport
        self._block_outboxes: dict[tuple[int, int], Outbox] = {}

    # --- samples and inference -----------------------------------------------------------------------------------

    def seat_channels(self, actor: RolePlan, group: int, seat: Seat) -> SeatChannels:
        """The actor's ends for one group's seat."""
        plan, transport, policy = self._plan, self._transport, seat.policy
        server = plan.server_of(group, policy)
        channels = SeatChannels(
            requests=transport.outbox(
                plan.seat_link(Stream.REQUESTS, actor, server, group, seat),
                request_layout(plan, policy),
                slots=_REQUEST_SLOTS,
            ),
            replies=transport.inbox(
                [plan.seat_link(Stream.REPLIES, server, actor, group, seat)], reply_layout(plan, policy)
            ),
            blocks=None,
        )
        if plan.sinks(policy) and plan.is_trained(group, seat):
            sink = plan.sink_of(group, policy)
            channels.blocks = self._block_outbox(actor, sink)
            if needs_grants(plan, policy) and plan.granted_together(group, seat)[0] is seat:
                channels.grant_requests = transport.outbox(
                    plan.seat_link(Stream.GRANT_REQUESTS, actor, sink, group, seat), HEADER_ONLY, slots=1
                )
                channels.grants = transport.inbox(
                    [plan.seat_link(Stream.GRANTS, sink, actor, group, seat)], HEADER_ONLY
                )
        return channels

    def match_channels(self, actor: RolePlan, group: int) -> MatchChannels:
        """The actor's ends for one group's matches."""
        plan = self._plan
        requests, matches = self._match_links(actor, group)
        return MatchChannels(
            self._transport.outbox(requests, match_request_layout(plan), slots=1),
            self._transport.inbox([matches], matches_layout(plan)),
        )

    def matchmaker_ends(self) -> tuple[Inbox, dict[int, Outbox]]:
        """The matchmaker's: requests by group, and the outbox of each."""
        plan = self._plan
        links = [self._match_links(actor, plan.group_number(actor, place)) for actor, place in plan.groups]
        inbox = self._transport.inbox([requests for requests, _ in links], match_request_layout(plan))
        outboxes = {
            group: self._transport.outbox(matches, matches_layout(plan), slots=_AWAITED_SLOTS, synchronous=False)
            for group, (_, matches) in enumerate(links)
        }
        return inbox, outboxes

    def _match_links(self, actor: RolePlan, group: int) -> tuple[Link, Link]:
        plan = self._plan
        return (
            plan.link(Stream.MATCH_REQUESTS, actor, plan.coordinator, group),
            plan.link(Stream.MATCHES, plan.coordinator, actor, group),
        )

    def _block_outbox(self, actor: RolePlan, sink: RolePlan) -> Outbox:
        """One for all groups of the actor that feed the sink."""
        key = (actor.address, sink.address)
        if key not in self._block_outboxes:
            self._block_outboxes[key] = self._transport.outbox(
                self._plan.pool_link(Stream.BLOCKS, actor, sink),
                block_layout(self._plan, sink.policy or ""),
                slots=outbox_slots(self._plan, actor, sink),
            )
        return self._block_outboxes[key]

    def blocks(self, sink: RolePlan) -> Inbox:
        """The sink's pool."""
        plan, policy = self._plan, sink.policy or ""
        actors = dict.fromkeys(feeder.actor for feeder in plan.feeders(sink))
        links = [plan.pool_link(Stream.BLOCKS, actor, sink) for actor in actors]
        return self._transport.inbox(links, block_layout(plan, policy), pool=pool_slots(plan, policy))

    def grant_ends(self, sink: RolePlan) -> tuple[Inbox, dict[int, Outbox]]:
        """The sink's ends of grants: requests by feeder, and the outbox of each place in them."""
        plan = self._plan
        feeders = [f for f in plan.feeders(sink) if plan.granted_together(f.group, f.seat)[0] is f.seat]
        inbox = self._transport.inbox(
            [plan.seat_link(Stream.GRANT_REQUESTS, each.actor, sink, each.group, each.seat) for each in feeders],
            HEADER_ONLY,
        )
        grants = {
            place: self._transport.outbox(
                plan.seat_link(Stream.GRANTS, sink, each.actor, each.group, each.seat),
                HEADER_ONLY,
                slots=_AWAITED_SLOTS,
                synchronous=False,
            )
            for place, each in enumerate(feeders)
        }
        return inbox, grants

    def drawing_ends(self, replay: RolePlan) -> tuple[Inbox, Outbox]:
        """The trainer's ends of one of its replay ranks: windows, and what it wants and says of them."""
        plan, policy = self._plan, replay.policy or ""
        windows, draws = self._drawing_links(replay)
        return (
            self._transport.inbox([windows], windows_layout(plan, policy)),
            self._transport.outbox(draws, draws_layout(plan, policy), slots=_AWAITED_SLOTS),
        )

    def replay_ends(self, replay: RolePlan) -> tuple[Outbox, Inbox]:
        """The same links' ends at the replay rank."""
        plan, policy = self._plan, replay.policy or ""
        windows, draws = self._drawing_links(replay)
        return (
            self._transport.outbox(windows, windows_layout(plan, policy), slots=WINDOW_SLOTS),
            self._transport.inbox([draws], draws_layout(plan, policy)),
        )

    def _drawing_links(self, replay: RolePlan) -> tuple[Link, Link]:
        plan, policy, trainer = self._plan, replay.policy or "", self._plan.drawer_of(replay)
        return (
            plan.link(Stream.WINDOWS, replay, trainer, 0, policy),
            plan.link(Stream.DRAWS, trainer, replay, 0, policy),
        )

    def serving_ends(self, server: RolePlan, policy: str) -> tuple[Inbox, dict[int, Outbox]] | None:
        """A policy server's ends: requests by seat, and the outbox of each place in them; None without groups."""
        plan = self._plan
        seats = plan.served(server, policy)
        if not seats:
            return None
        links = _request_links(plan, server, seats)
        inbox = self._transport.inbox(links, request_layout(plan, policy))
        replies = {
            place: self._transport.outbox(link, reply_layout(plan, policy), slots=_AWAITED_SLOTS, synchronous=False)
            for place, link in enumerate(_reply_links(plan, server, seats))
        }
        return inbox, replies

    # --- control -------------------------------------------------------------------------------------------------

    def reporter_ends(self, reporting_role: RolePlan) -> tuple[Outbox, Inbox]:
        """A rank's ends of the control stream."""
        plan = self._plan
        return (
            self._transport.outbox(plan.pool_link(Stream.REPORTS, reporting_role, plan.coordinator), TEXT, slots=1),
            self._transport.inbox([plan.pool_link(Stream.COMMANDS, plan.coordinator, reporting_role)], TEXT),
        )

    def coordinator_ends(self) -> tuple[Inbox, dict[int, Outbox]]:
        """The coordinator's: reports of all ranks, and commands by rank."""
        plan = self._plan
        reporting_roles = {
            rank.rank: role for rank in plan.ranks if (role := plan.reporting_role(rank.rank)) is not None
        }
        links = [plan.pool_link(Stream.REPORTS, role, plan.coordinator) for role in reporting_roles.values()]
        commands = {
            rank: self._transport.outbox(
                plan.pool_link(Stream.COMMANDS, plan.coordinator, role),
                TEXT,
                slots=_AWAITED_SLOTS,
                synchronous=False,
            )
            for rank, role in reporting_roles.items()
        }
        return self._transport.inbox(links, TEXT, pool=min(64, 2 * len(links))), commands

    def part_outbox(self, role: RolePlan, slots: int) -> Outbox:
        """A first trainer's or replay rank's way for its part of a checkpoint; `slots` may be under way at once."""
        return self._transport.outbox(self._plan.part_link(role), CHUNK, slots=slots)

    def part_inbox(self, role: RolePlan) -> Inbox:
        """The coordinator's end of it."""
        return self._transport.inbox([self._plan.part_link(role)], CHUNK, pool=2)
