"""Versions against each other: who plays whom next, when a version is met, and which mixtures follow."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from srlhpc.errors import UserError
from srlhpc.league.game import Game, Mixtures
from srlhpc.league.match_rules import psro
from srlhpc.roles.matchmaking.payoff_games import Pairing, PayoffGames

GAMES = 4
RPS = {0: "rock", 1: "paper", 2: "scissors"}


def solve(game: Game) -> Mixtures:
    return psro.mixtures(psro.Settings(solver="regret_matching"), game)


def payoffs(policies: tuple[str, str] = ("default", "default")) -> PayoffGames:
    return PayoffGames(policies, GAMES, solve)


def play(table: PayoffGames, pairing: Pairing, games: int, first: float) -> None:
    """So many games, in which the first side gets so much and the second as much less."""
    table.add(np.array([pairing] * games), np.array([[first, -first]] * games))


def wins(pairing: Pairing) -> float:
    """What a version whose number is its choice gets."""
    return ((pairing[0] - pairing[1] + 1) % 3) - 1


def test_first_versions_play_each_other_and_are_met_then() -> None:
    table = payoffs()
    assert table.candidate is None
    table.there("default", [0])
    assert table.candidate == (1, 0)
    assert table.mixture(1, [0, 5]).tolist() == [1.0, 0.0]
    assert table.missing(Counter()) == {(0, 0): GAMES}
    play(table, (0, 0), GAMES, 0.0)
    assert table.candidate is None
    assert table.summary()["mixtures"] == [[1.0], [1.0]]


def test_version_is_met_once_all_its_games_are_played() -> None:
    table = payoffs()
    table.there("default", [0, 1])
    play(table, (0, 0), GAMES, 0.0)
    assert table.candidate == (0, 1)
    assert table.missing(Counter({(1, 0): 1})) == {(1, 0): GAMES - 1}
    play(table, (1, 0), GAMES, 1.0)
    # It plays the second side only when both players of the first have met it.
    assert table.candidate == (1, 1)
    assert list(table.missing(Counter())) == [(0, 1), (1, 1)]
    play(table, (1, 1), GAMES, 0.0)
    play(table, (0, 1), GAMES - 1, -1.0)
    assert table.missing(Counter()) == {(0, 1): 1}
    assert table.summary()["candidate"] == {"side": 1, "version": 1, "games": 2 * GAMES - 1, "needs": 2 * GAMES}
    assert table.mixture(1, [0, 1]).tolist() == [1.0, 0.0]
    play(table, (0, 1), 1, -1.0)
    assert table.candidate is None
    assert table.mixture(1, [0, 1]) == pytest.approx([0.0, 1.0], abs=0.01)


def test_rock_paper_and_scissors_are_met_alike() -> None:
    table = payoffs()
    table.there("default", list(RPS))
    while missing := table.missing(Counter()):
        for pairing, games in missing.items():
            play(table, pairing, games, wins(pairing))
    assert [len(players) for players in table.summary()["players"]] == [3, 3]
    for side in range(2):
        assert table.mixture(side, list(RPS)) == pytest.approx([1 / 3] * 3, abs=0.02)
    assert table.game().row.tolist() == [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]


def test_sides_of_two_policies_have_versions_of_their_own() -> None:
    table = payoffs(("left", "right"))
    table.there("left", [0, 10])
    table.there("right", [0])
    play(table, (0, 0), GAMES, 0.0)
    # The second version of the first side needs no second one of the other.
    assert table.missing(Counter()) == {(10, 0): GAMES}
    table.there("other", [3])
    play(table, (10, 0), GAMES, 1.0)
    assert table.mixture(0, [0, 10]) == pytest.approx([0.0, 1.0], abs=0.01)
    assert table.mixture(1, [0]).tolist() == [1.0]


def test_side_that_was_not_in_a_game_got_nothing() -> None:
    table = payoffs()
    table.there("default", [0])
    table.add(np.zeros((GAMES, 2), np.int64), np.full((GAMES, 2), np.nan))
    assert table.candidate is None


@pytest.mark.parametrize("games", [0, GAMES - 1, GAMES])
def test_saved_table_goes_on_and_counts_no_game_twice(games: int) -> None:
    one, other = payoffs(), payoffs()
    one.there("default", [0, 1])
    play(one, (0, 0), GAMES, 0.0)
    if games:
        play(one, (1, 0), games, 1.0)
    other.load_state(one.save_state())
    other.there("default", [0, 1])
    assert other.summary() == one.summary()
    assert other.missing(Counter()) == one.missing(Counter())
    for table in (one, other):
        for pairing, left in table.missing(Counter()).items():
            play(table, pairing, left, wins(pairing))
    assert other.summary() == one.summary()


def test_games_of_versions_that_are_gone_are_left_out() -> None:
    table = payoffs()
    table.there("default", [0, 1])
    for pairing in ((0, 0), (1, 0), (0, 1), (1, 1)):
        play(table, pairing, GAMES, wins(pairing))
    other = payoffs()
    other.load_state(table.save_state())
    other.begin("default", [0])
    assert other.summary()["players"] == [[0], [0]]
    assert other.mixture(1, [0]).tolist() == [1.0]
    other.there("default", [1])
    assert other.missing(Counter()) == {(1, 0): GAMES}


def test_mixtures_of_a_rule_are_checked() -> None:
    table = PayoffGames(("default", "default"), GAMES, lambda game: Mixtures(np.ones(3), np.ones(3)))
    table.there("default", [0])
    with pytest.raises(UserError, match="matches.rule: gave .* for 1 version; chances are 1 numbers"):
        play(table, (0, 0), GAMES, 0.0)


@pytest.mark.parametrize("solver", ["nash", "uniform", "regret_matching", "alpha_rank"])
def test_every_solver_mixes_rock_paper_scissors_alike(solver: str) -> None:
    row = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
    settings = psro.Settings.model_validate({"solver": solver})
    mixed = psro.mixtures(settings, Game(row, -row))
    assert mixed.row == pytest.approx([1 / 3] * 3, abs=0.02)
