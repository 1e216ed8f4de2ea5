"""Who meets whom, which versions are held, and what counts as a result."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from srlhpc.data.matches import LIVE
from tests.roles.matchmaking.matchmaker_setup import LOT, Matches


def test_the_side_that_does_not_learn_is_played_by_versions() -> None:
    matches = Matches()
    matches.write(0, 2)
    left, right, both = (matches.deal(group) for group in range(3))
    assert {players[0] for _, players in left} == {players[1] for _, players in right} == {LIVE}
    assert {players[1] for _, players in left} | {players[0] for _, players in right} <= {0, 2}
    assert {tuple(players) for _, players in both} == {(LIVE, LIVE)}
    numbers = [match for lot in (left, right, both) for match, _ in lot]
    assert numbers == list(range(3 * LOT))


def test_groups_wait_for_the_first_version_unless_they_play_themselves() -> None:
    matches = Matches()
    matches.ask(0)
    assert matches.lot(0) is None
    assert matches.matchmaker.waits_for() == "waits for the first version of a policy"
    assert [match for match, _ in matches.deal(2)] == list(range(LOT))
    matches.write(0)
    matches.matchmaker.poll()
    assert matches.lot(0) is not None
    assert matches.matchmaker.waits_for() == ""


def test_results_are_counted_by_version_and_side() -> None:
    matches = Matches()
    matches.write(5)
    left, right = matches.deal(0), matches.deal(1)
    matches.ask(0, [(left[0][0], 1.0, 0.0), (left[1][0], 0.0, 1.0), (left[2][0], 0.5, 0.5)])
    matches.ask(1, [(right[0][0], -1.0, 3.0)])
    table = matches.opponents.between(0, 1).table
    assert table.columns == ("5",)
    assert (table.counts.tolist(), table.wins.tolist(), table.losses.tolist()) == ([[3]], [[1]], [[1]])
    first, second = matches.matchmaker.summary()["past"]
    assert (first["learner"], first["games"], first["win_rate"], first["versions"]) == ("left", 3, 0.5, 1)
    assert (second["learner"], second["games"], second["win_rate"]) == ("right", 1, 1.0)
    assert matches.opponents.between(0, 1).scores.win_rates([5]).tolist() == [(1.5 + 1) / (3 + 2)]


def test_result_that_came_before_or_of_another_groups_match_counts_for_nothing() -> None:
    matches = Matches()
    matches.write(0)
    own, others = matches.deal(0), matches.deal(1)
    win = (own[0][0], 1.0, 0.0)
    matches.ask(0, [win])
    matches.lot(0)
    matches.ask(0, [win, (others[0][0], 1.0, 0.0), (10_000, 1.0, 0.0)])
    assert matches.matchmaker.summary()["past"][0]["games"] == 1


def test_episode_without_one_of_the_sides_counts_for_nothing() -> None:
    matches = Matches()
    matches.write(0)
    lot = matches.deal(0)
    matches.ask(0, [(lot[0][0], 1.0, float("nan"))])
    assert matches.matchmaker.summary()["past"][0]["games"] == 0


def test_version_that_is_no_longer_kept_is_dealt_no_more_but_held_while_it_is_played() -> None:
    matches = Matches(keep=1)
    matches.write(0)
    lot = matches.deal(0)
    assert matches.matchmaker.coming("default", 2) == {0}
    matches.matchmaker.written("default", 2)
    for match, _ in lot:
        matches.ask(0, [(match, 0.0, 0.0)])
        assert {players[1] for _, players in matches.lot(0) or []} == {2}
    assert matches.matchmaker.coming("default", 4) == {2}


def test_matches_of_a_dead_actor_hold_nothing_and_it_gets_no_more() -> None:
    matches = Matches(keep=1)
    matches.write(0)
    matches.deal(0)
    matches.write(2)
    assert matches.matchmaker.coming("default", 4) == {0, 2}
    matches.matchmaker.forget([0])
    assert matches.matchmaker.coming("default", 4) == {2}
    matches.matchmaker.written("default", 4)
    assert matches.deal(1)


@pytest.mark.parametrize("resident", [1, 2, 8])
def test_versions_are_met_as_often_as_the_rule_says_however_few_are_met_at_once(resident: int) -> None:
    def chances(win_rates: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([0.5, 0.3, 0.2])[: len(win_rates)] / np.array([0.5, 0.3, 0.2])[: len(win_rates)].sum()

    matches = Matches(chances=chances, resident=resident)
    matches.write(0, 1, 2)
    rounds = 3000
    met: Counter[int] = Counter()
    for _ in range(rounds):
        lot = matches.deal(0)
        met.update(players[1] for _, players in lot)
        assert len({players[1] for _, players in lot}) <= resident
    # Places of a hand last for `resident` lots, so that many lots are worth one draw at worst.
    error = 4 * np.sqrt(0.25 * resident / rounds)
    assert [met[version] / (rounds * LOT) for version in range(3)] == pytest.approx([0.5, 0.3, 0.2], abs=error)


def test_what_is_loaded_goes_on_as_what_was_saved() -> None:
    one, other = Matches(), Matches(seed=2)
    one.write(0, 2)
    lot = one.deal(0)
    other.matchmaker.load_state(one.matchmaker.save_state())
    for matches in (one, other):
        matches.ask(0, [(lot[0][0], 1.0, 0.0)])
    assert one.lot(0) == other.lot(0)
    assert one.matchmaker.summary()["past"] == other.matchmaker.summary()["past"]
    assert other.matchmaker.summary()["past"][0]["games"] == 1


def test_checkpoint_keeps_results_and_forgets_matches_under_way() -> None:
    one, other = Matches(), Matches()
    one.write(0)
    lot = one.deal(0)
    one.ask(0, [(lot[0][0], 1.0, 0.0)])
    other.matchmaker.load_results(one.matchmaker.results_state())
    other.write(0)
    other.ask(0, [(lot[1][0], 1.0, 0.0)])
    new = other.lot(0)
    assert new is not None
    assert other.matchmaker.summary()["past"][0]["games"] == 1
    assert min(match for match, _ in new) > max(match for match, _ in lot)


def test_last_version_is_met_until_the_next_is_there() -> None:
    matches = Matches(keep=1)
    matches.write(0)
    assert matches.matchmaker.coming("default", 2) == {0}
    assert {players[1] for _, players in matches.deal(0)} == {0}
    matches.matchmaker.written("default", 2)
    assert {players[1] for _, players in matches.deal(0)} == {2}


def test_results_of_lots_of_another_size_leave_the_numbers_in_step() -> None:
    one, other = Matches(), Matches()
    one.write(0)
    one.deal(0)
    state = one.matchmaker.results_state() | {"dealt": LOT + 1}
    other.matchmaker.load_results(state)
    other.write(0)
    lot = other.deal(0)
    assert lot[0][0] == 2 * LOT
    other.ask(0, [(lot[-1][0], 1.0, 0.0)])
    assert other.matchmaker.summary()["past"][0]["games"] == 1


def test_results_of_other_sides_are_left_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    one, other = Matches(), Matches()
    one.write(0)
    lot = one.deal(0)
    one.ask(0, [(lot[0][0], 1.0, 0.0)])
    state = one.matchmaker.results_state() | {"sides": '["right", "left"]'}
    other.matchmaker.load_results(state)
    assert other.matchmaker.summary()["past"] == []
    assert "results of matches of other sides (right, left)" in caplog.text


def test_hand_keeps_nobody_whom_the_rule_no_longer_wants() -> None:
    wanted = [np.array([0.5, 0.5, 0.0])]

    def chances(win_rates: NDArray[np.float64]) -> NDArray[np.float64]:
        return wanted[-1][: len(win_rates)]

    matches = Matches(chances=chances, resident=1)
    matches.write(0, 1, 2)
    for _ in range(5):
        matches.deal(0)
    wanted.append(np.array([0.0, 0.5, 0.5]))
    assert 0 not in {players[1] for _ in range(20) for _, players in matches.deal(0)}
