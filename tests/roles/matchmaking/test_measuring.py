"""Groups in which versions play each other: every pairing gets its games, none more, and nobody stands still."""

from __future__ import annotations

from srlhpc.league.game import Game, Mixtures
from srlhpc.league.meta_solvers import uniform
from srlhpc.roles.matchmaking.payoff_games import PayoffGames
from tests.roles.matchmaking.matchmaker_setup import LOT, Matches

GAMES = 6
Dealt = list[tuple[int, list[int]]]


def solve(game: Game) -> Mixtures:
    return uniform.solve(game)


def measuring() -> Matches:
    return Matches(payoffs=PayoffGames(("default", "default"), GAMES, solve), keep=100)


def decided(lot: Dealt, value: float = 1.0) -> list[tuple[int, float, float]]:
    return [(match, value, -value) for match, _ in lot]


def test_pairings_get_their_games_and_no_more() -> None:
    matches = measuring()
    matches.write(0)
    one, two = matches.deal(1), matches.deal(2)
    assert [players for _, players in one + two] == [[0, 0]] * GAMES
    matches.ask(1, decided(one))
    # The other group plays what is missing yet, so nothing is left for this one.
    assert matches.lot(1) is None
    matches.ask(2, decided(two))
    table = matches.matchmaker.summary()["payoffs"]
    assert (table["players"], table["candidate"]) == ([[0], [0]], None)
    state = matches.matchmaker.results_state()["payoffs"]
    assert state["counts"].tolist() == [[GAMES]]
    assert state["wins"].tolist() == [[GAMES]]


def test_group_goes_on_until_all_its_games_that_count_are_played() -> None:
    matches = measuring()
    matches.write(0)
    lot = matches.deal(1)
    matches.deal(2)
    # One game of the first lot is still played, and nothing is missing.
    matches.ask(1, decided(lot[:-1]))
    more = matches.lot(1)
    assert more is not None
    matches.ask(1, decided(lot[-1:] + more[:-1]))
    assert matches.lot(1) is None
    assert matches.matchmaker.results_state()["payoffs"]["counts"].tolist() == [[LOT]]


def test_waiting_group_plays_the_next_version() -> None:
    matches = measuring()
    matches.write(0)
    one, two = matches.deal(1), matches.deal(2)
    matches.ask(1, decided(one))
    matches.ask(2, decided(two))
    assert matches.lot(1) is None
    matches.write(3)
    matches.matchmaker.poll()
    assert [players for _, players in matches.lot(1) or []] == [[3, 0]] * LOT


def test_lot_has_few_pairings_and_no_more_matches_than_the_group_needs() -> None:
    matches = Matches(payoffs=PayoffGames(("default", "default"), 1, solve), keep=100)
    matches.write(0)
    (only,) = matches.deal(1)
    matches.write(1, 2, 3)
    matches.ask(1, decided([only]))
    # Version 1 on the first side against version 0 of the second.
    assert [players for _, players in matches.lot(1) or []] == [[1, 0]]


def test_games_of_a_dead_actor_are_dealt_again() -> None:
    matches = measuring()
    matches.write(0)
    one = matches.deal(1)
    matches.deal(2)
    matches.ask(1, decided(one))
    assert matches.lot(1) is None
    matches.matchmaker.forget([2])
    matches.matchmaker.poll()
    lot = matches.lot(1)
    assert lot is not None
    matches.ask(1, decided(lot))
    assert matches.matchmaker.results_state()["payoffs"]["counts"].tolist() == [[GAMES]]


def test_version_is_met_by_who_learns_when_its_games_are_played() -> None:
    matches = measuring()
    matches.write(0)
    one, two = matches.deal(1), matches.deal(2)
    matches.write(3)
    assert {players[1] for _, players in matches.deal(0)} == {0}
    matches.ask(1, decided(one))
    matches.ask(2, decided(two))
    for _ in range(20):
        for group in (1, 2):
            if (lot := matches.lot(group)) is not None:
                matches.ask(group, decided(lot))
    assert matches.matchmaker.summary()["payoffs"]["players"] == [[0, 3], [0, 3]]
    met = {players[1] for _ in range(10) for _, players in matches.deal(0)}
    assert met == {0, 3}


def test_what_is_loaded_counts_what_was_under_way() -> None:
    one, other = measuring(), measuring()
    one.write(0)
    lot = one.deal(1)
    other.write(0)
    other.matchmaker.load_state(one.matchmaker.save_state())
    for matches in (one, other):
        matches.ask(1, decided(lot))
    assert one.lot(1) == other.lot(1)
    assert one.matchmaker.summary()["payoffs"] == other.matchmaker.summary()["payoffs"]
