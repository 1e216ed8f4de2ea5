"""A matchmaker of three groups over in-process links, moved by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.channel import Link, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.protocol import MatchHeader
from srlhpc.data.matches import matches_layout, request_layout
from srlhpc.data.version_folder import kept_versions
from srlhpc.roles.matchmaking.matchmaker import MatchGroup, Matchmaker
from srlhpc.roles.matchmaking.opponents import MatchSide, Opponents
from srlhpc.roles.matchmaking.payoff_games import PayoffGames

LOT, COORDINATOR = 4, 9
SIDES = (MatchSide("left", "default", True), MatchSide("right", "default", True))
GROUPS = (MatchGroup(0, 0, (7, 7)), MatchGroup(1, 1, (7, 7)), MatchGroup(2, None, (7, 7)))
"""Group 0 learns as left, group 1 as right, group 2 plays itself; each is of an actor of its own."""

MEASURING = (GROUPS[0], *(MatchGroup(place, None, (7, 7), measures=True) for place in (1, 2)))


def uniform(win_rates: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.full(len(win_rates), 1.0 / len(win_rates))


class Matches:
    """The matchmaker, and the groups' ends of its links."""

    def __init__(
        self,
        *,
        chances: Callable[[NDArray[np.float64]], NDArray[np.float64]] = uniform,
        resident: int = 2,
        keep: int = 3,
        seed: int = 1,
        payoffs: PayoffGames | None = None,
    ) -> None:
        """With `payoffs`, versions play each other in groups 1 and 2."""
        transport = InProcessTransport()
        there = [Link(Stream.MATCH_REQUESTS, group.actor, COORDINATOR) for group in GROUPS]
        back = [Link(Stream.MATCHES, COORDINATOR, group.actor) for group in GROUPS]
        asked, answered = request_layout(LOT, 2), matches_layout(LOT, 2)
        self._requests = [transport.outbox(link, asked, slots=1) for link in there]
        self._matches = [transport.inbox([link], answered) for link in back]
        self.opponents = Opponents(
            SIDES,
            chances=None if payoffs is not None else chances,
            mixture=None if payoffs is None else payoffs.mixture,
            decay=1.0,
            resident=resident,
            kept=lambda updates: kept_versions(updates, keep, ()),
            seed=seed,
        )
        self.matchmaker = Matchmaker(
            SIDES,
            GROUPS if payoffs is None else MEASURING,
            self.opponents,
            lot=LOT,
            payoffs=payoffs,
            requests=transport.inbox(there, asked),
            outboxes={place: transport.outbox(link, answered, slots=2) for place, link in enumerate(back)},
        )

    def write(self, *updates: int) -> None:
        for version in updates:
            self.matchmaker.coming("default", version)
            self.matchmaker.written("default", version)

    def ask(self, group: int, results: Sequence[tuple[int, float, float]] = ()) -> None:
        """Sends results: number of a match, returns of both sides."""
        message = self._requests[group].acquire()
        assert message is not None
        for place, (match, *returns) in enumerate(results):
            message.fields["matches"][place] = match
            message.fields["returns"][place] = returns
        message.header[MatchHeader.GROUP] = group
        message.header[MatchHeader.COUNT] = len(results)
        self._requests[group].send(message)
        self.matchmaker.poll()

    def lot(self, group: int) -> list[tuple[int, list[int]]] | None:
        """Numbers of matches and their players; None if no lot came."""
        self._matches[group].poll()
        message = self._matches[group].take()
        if message is None:
            return None
        count = int(message.header[MatchHeader.COUNT])
        matches, players = (message.fields[name][:count].tolist() for name in ("matches", "players"))
        rows = list(zip(matches, players, strict=True))
        self._matches[group].release(message)
        return rows

    def deal(self, group: int) -> list[tuple[int, list[int]]]:
        self.ask(group)
        lot = self.lot(group)
        assert lot is not None
        return lot
