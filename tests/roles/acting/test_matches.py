"""A group's matches: one for each environment, the next when its episode ends, results back to the matchmaker."""

from __future__ import annotations

from typing import Any

import numpy as np

from srlhpc.comm.channel import Link, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.protocol import MatchHeader
from srlhpc.data.matches import LIVE, matches_layout, request_layout
from srlhpc.environment import Episode
from srlhpc.roles.acting.matches import GroupMatches, MatchChannels

LOT, E = 8, 2


class Table:
    """A group's matches, and the matchmaker's ends of its links."""

    def __init__(self) -> None:
        transport = InProcessTransport()
        there, back = Link(Stream.MATCH_REQUESTS, 0, 1), Link(Stream.MATCHES, 1, 0)
        channels = MatchChannels(
            transport.outbox(there, request_layout(LOT, 2), slots=1), transport.inbox([back], matches_layout(LOT, 2))
        )
        self._requests = transport.inbox([there], request_layout(LOT, 2))
        self._matches = transport.outbox(back, matches_layout(LOT, 2), slots=2)
        self.matches = GroupMatches(3, channels, [["left"], ["right"]], num_environments=E, lot=LOT)

    def asked(self) -> list[tuple[int, list[float]]] | None:
        """The results that came with a request; None if none came."""
        self._requests.poll()
        message = self._requests.take()
        if message is None:
            return None
        count = int(message.header[MatchHeader.COUNT])
        matches, returns = (message.fields[name][:count].tolist() for name in ("matches", "returns"))
        self._requests.release(message)
        return list(zip(matches, returns, strict=True))

    def deal(self, first: int) -> None:
        """A lot of matches from `first` on, whose right side is played by a version of the same number."""
        message = self._matches.acquire()
        assert message is not None
        message.fields["matches"][...] = first + np.arange(LOT)
        message.fields["players"][...] = [[LIVE, first + place] for place in range(LOT)]
        message.header[MatchHeader.COUNT] = LOT
        self._matches.send(message)


def ended(env: int, left: float, right: float | None) -> Episode:
    returns = {"left": left} | ({} if right is None else {"right": right})
    return Episode(env, 1, returns, {})


def test_group_waits_for_its_first_lot_and_gives_each_environment_a_match() -> None:
    table = Table()
    assert not table.matches.are_ready()
    assert table.asked() == []
    assert not table.matches.are_ready()
    assert table.asked() is None
    table.deal(10)
    assert table.matches.are_ready()
    assert table.matches.players.tolist() == [[LIVE, LIVE], [10, 11]]


def begun() -> Table:
    """Whose environments have the matches 0 and 1 of the first lot."""
    table = Table()
    table.matches.are_ready()
    table.asked()
    table.deal(0)
    assert table.matches.are_ready()
    assert table.asked() is None
    return table


def both_end(table: Table) -> None:
    table.matches.ended([ended(0, 1.0, 0.0), ended(1, 0.0, 1.0)])


def test_ended_episode_is_a_result_and_its_environment_takes_the_next_match() -> None:
    table = begun()
    table.matches.ended([ended(1, 2.0, -2.0)])
    assert table.matches.are_ready()
    assert table.matches.players.tolist() == [[LIVE, LIVE], [0, 2]]
    assert table.asked() is None
    table.matches.ended([ended(1, 0.0, 0.0)])
    assert table.matches.are_ready()
    # Half of the lot is used.
    assert table.asked() == [(1, [2.0, -2.0]), (2, [0.0, 0.0])]


def test_result_of_a_side_that_was_not_in_the_game_is_no_number() -> None:
    table = begun()
    table.matches.ended([ended(0, 1.0, None), ended(1, 0.0, 0.0)])
    table.matches.are_ready()
    (match, (left, right)), _ = table.asked() or []
    assert (match, left) == (0, 1.0)
    assert np.isnan(right)


def test_group_waits_where_its_matches_are_used_up() -> None:
    table = begun()
    for _ in range(LOT // E - 1):
        both_end(table)
        assert table.matches.are_ready()
    both_end(table)
    assert not table.matches.are_ready()
    table.deal(LOT)
    assert table.matches.are_ready()
    assert table.matches.players[1].tolist() == [LOT, LOT + 1]


def test_more_results_than_fit_into_one_message_come_with_the_next() -> None:
    table = begun()
    for first in (LOT, 2 * LOT):
        # The request is not taken, so results pile up.
        table.deal(first)
        for _ in range(LOT // E):
            both_end(table)
            assert table.matches.are_ready()
    seen = [match for match, _ in table.asked() or []]
    table.deal(3 * LOT)
    table.matches.are_ready()
    for _ in range(LOT // E + 2):
        both_end(table)
        table.matches.are_ready()
    rest = [match for match, _ in table.asked() or []]
    assert len(rest) == LOT
    assert [*seen, *rest] == list(range(len(seen) + LOT))


def test_matches_go_on_from_their_state() -> None:
    one, other = begun(), Table()
    one.matches.ended([ended(0, 1.0, 0.0)])
    state: dict[str, Any] = one.matches.save_state()
    other.matches.load_state(state)
    for table in (one, other):
        assert table.matches.are_ready()
        table.matches.ended([ended(1, 0.0, 0.0)])
        assert table.matches.are_ready()
    assert one.matches.players.tolist() == other.matches.players.tolist() == [[LIVE, LIVE], [2, 3]]
    assert one.asked() == other.asked() == [(0, [1.0, 0.0]), (1, [0.0, 0.0])]
