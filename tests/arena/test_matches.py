"""Episodes of all against all, and what is counted of them."""

from __future__ import annotations

import io
import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.arena.contestants import contestants_of
from srlhpc.arena.matches import Conditions, Played, play
from srlhpc.arena.report import ratings_of, result_of
from srlhpc.arena.sides import Side
from srlhpc.arena.tables import lines_of
from srlhpc.errors import UserError
from srlhpc.league.payoffs import PayoffTable
from srlhpc.runs.named_checkpoint import find_checkpoint
from srlhpc.runs.progress import ProgressLine
from tests.arena.players import (
    PAPER,
    ROCK,
    RPS,
    SCISSORS,
    TWO_POLICIES,
    always,
    initial_parameters,
    job_of,
    make_players,
    write_parameters,
)
from tests.launch.making_runs import make_attempt, make_run

UNEVEN = {"factory": "tests.arena.uneven"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `one`, whose players are rock, paper, scissors and a mixture; `two`, with a policy for each side."""
    root = tmp_path_factory.mktemp("runs")
    make_players(root, "one", job_of(), always(ROCK), always(PAPER), always(SCISSORS), [0.5, 0.25, 0.25])
    make_players(root, "two", job_of(RPS, **TWO_POLICIES), always(PAPER))
    make_players(root, "uneven", job_of(UNEVEN), always(0, 2), always(1, 2))
    return root


def played(root: Path, players: Sequence[str], patterns: Sequence[str] = (), **conditions: Any) -> Played:
    contestants, sides = contestants_of([find_checkpoint(root, name) for name in players], patterns)
    return play(contestants, sides, Conditions(**conditions), ProgressLine(io.StringIO()))


PURE = ["one@1", "one@2", "one@3"]


def test_every_pairing_plays_so_many_episodes_on_either_side(root: Path) -> None:
    found = played(root, PURE, episodes=11)
    assert found.by_side.counts.tolist() == [[0, 11, 11], [11, 0, 11], [11, 11, 0]]
    assert found.games.counts.tolist() == [[0, 22, 22], [22, 0, 22], [22, 22, 0]]
    assert (found.alike, found.unfinished) == (True, 0)


def test_rock_paper_and_scissors_beat_each_other_in_a_circle_that_ratings_hide(root: Path) -> None:
    found = played(root, PURE, episodes=3)
    np.testing.assert_array_equal(found.games.win_rates, [[np.nan, 0, 1], [1, np.nan, 0], [0, 1, np.nan]])
    np.testing.assert_array_equal(found.by_side.mean_returns[0], [[np.nan, -1, 1], [1, np.nan, -1], [-1, 1, np.nan]])
    assert ratings_of(found).values.tolist() == pytest.approx([0.0] * 3, abs=1e-6)


def test_run_with_a_policy_for_each_side_plays_one_with_a_policy_for_both(root: Path) -> None:
    found = played(root, ["one@1", "two"], episodes=2)
    assert found.by_side.mean_returns[0, 0, 1] == -1
    assert found.by_side.mean_returns[0, 1, 0] == 1
    assert found.games.wins.tolist() == [[0, 0], [4, 0]]


def test_most_likely_actions_are_played_unless_they_are_drawn(root: Path) -> None:
    likely = played(root, ["one@2", "one@4"], episodes=40)
    drawn = played(root, ["one@2", "one@4"], episodes=200, drawn=True)
    assert likely.games.win_rates[0, 1] == 1.0
    # Paper beats rock, which is half of the mixture, and draws against a quarter.
    assert drawn.games.win_rates[0, 1] == pytest.approx(0.5 + 0.25 / 2, abs=0.08)
    assert drawn.games.draws[0, 1] == pytest.approx(100, abs=30)


def test_same_seed_gives_the_same_games_and_another_seed_others(root: Path) -> None:
    one, two, other = (
        played(root, ["one@4", "one@1", "one@2"], episodes=20, seed=seed, drawn=True) for seed in (5, 5, 6)
    )
    for name in ("counts", "wins", "losses", "means", "deviations"):
        np.testing.assert_array_equal(getattr(one.by_side, name), getattr(two.by_side, name))
    assert (one.by_side.wins != other.by_side.wins).any()


def test_sides_that_are_not_alike_are_played_by_all_and_added_in_pairs(root: Path) -> None:
    """The pack never has the greater return, so episodes would tell nothing; who plays 1 gets more in pairs of them."""
    found = played(root, ["uneven@1", "uneven@2"], ["lone", "pack_.*"], episodes=9)
    assert not found.alike
    assert found.by_side.counts.tolist() == [[9, 9], [9, 9]]
    assert found.by_side.mean_returns.tolist() == [[[10, 10], [11, 11]], [[0, 1], [0, 1]]]
    assert found.games.counts.tolist() == [[0, 9], [9, 0]]
    assert found.games.wins.tolist() == [[0, 0], [9, 0]]
    assert found.games.mean_returns[0, 0, 1] == 10
    assert found.games.mean_returns[0, 1, 0] == 12


def test_hunters_and_prey_are_kinds_of_their_own(tmp_path: Path) -> None:
    """Three hunters that stand still and a prey that does; then both run to the right."""
    tag = {"factory": "pettingzoo", "env": "mpe2.simple_tag_v3", "kwargs": {"max_cycles": 5}}
    entries = [{"match": "adversary_.*", "policy": "hunters"}, {"match": "agent_.*", "policy": "prey"}]
    make_players(tmp_path, "tag", job_of(tag, agents=entries), always(0, 5), always(2, 5))
    found = played(tmp_path, ["tag@1", "tag@2"], episodes=3)
    assert found.by_side.counts.tolist() == [[3, 3], [3, 3]]
    assert found.games.counts.tolist() == [[0, 3], [3, 0]]
    # Whom a hunter touches loses what every hunter wins; the field's border costs the prey alone.
    assert (found.by_side.mean_returns[0] >= 0).all()
    assert (found.by_side.mean_returns[1] <= 0).all()


def test_episodes_that_are_given_up_are_counted_and_left_out_of_pairs(root: Path) -> None:
    """Episodes with an action 1 of the lone one take a step more."""
    found = played(root, ["uneven@1", "uneven@2"], ["lone", "pack_.*"], episodes=10, most_steps=1)
    assert found.by_side.counts.tolist() == [[10, 10], [0, 0]]
    assert (found.unfinished, found.most_steps) == (20, 1)
    assert found.games.counts.tolist() == [[0, 0], [0, 0]]


def test_side_that_was_not_in_the_game_is_told(tmp_path: Path) -> None:
    make_players(tmp_path, "run", job_of(UNEVEN | {"leaves": True}), always(0, 2), always(1, 2))
    with pytest.raises(UserError, match=r"side pack_\.\*: none of its agents \(pack_0, pack_1\) was in the game"):
        played(tmp_path, ["run@1", "run@2"], ["lone", "pack_.*"], episodes=1)


def test_progress_names_the_pairing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srlhpc.playing._SECONDS_BEFORE_PROGRESS", -1.0)
    shown = io.StringIO()
    contestants, sides = contestants_of([find_checkpoint(root, name) for name in PURE], ())
    play(contestants, sides, Conditions(1), ProgressLine(shown, every_seconds=0.0))
    lines = shown.getvalue().splitlines()
    assert len(lines) == 6
    assert lines[-1].startswith("pairing 6 of 6 · 1 of 1 episode · 1 step · ")


# --- what is said of it ----------------------------------------------------------------------------------------------


def told(root: Path, players: Sequence[str], patterns: Sequence[str] = (), width: int = 80, **wanted: Any) -> list[str]:
    contestants, sides = contestants_of([find_checkpoint(root, name) for name in players], patterns)
    conditions = Conditions(**wanted)
    return lines_of(sides, conditions, play(contestants, sides, conditions, ProgressLine(io.StringIO())), width)


def test_table_has_win_rates_with_intervals_and_ratings_beside_them(root: Path) -> None:
    lines = told(root, ["one@1", "one@2"], episodes=10)
    (first,) = (place for place, line in enumerate(lines) if "player" in line)
    # 40 (1 - σ(2 r)) = 2 σ(r) - 1 with the prior's drawn game each: r = 1.975, or 343 Elo.
    assert [line.split() for line in lines[first : first + 3]] == [
        ["player", "rating", "1", "2"],
        ["1", "one@1", "-343", "±", "261", "-", "0", "(0-16)"],
        ["2", "one@2", "+343", "±", "261", "100", "(84-100)", "-"],
    ]


def test_table_fits_a_terminal_and_goes_on_below(root: Path) -> None:
    players = [*PURE, "one@4", "two"]
    lines = told(root, players, width=60, episodes=2, drawn=True)
    assert max(map(len, lines)) <= 60
    heads = [line.split() for line in lines if line.split()[-1:] in (["2"], ["5"])]
    assert heads == [["player", "rating", "1", "2"], ["3", "4", "5"]]


def test_returns_of_sides_that_are_not_alike_are_told_one_by_one(root: Path) -> None:
    lines = told(root, ["uneven@1", "uneven@2"], ["lone", "pack_.*"], episodes=4)
    place = lines.index("mean return of pack_.*; rows play lone, columns pack_.*")
    assert [line.split() for line in lines[place + 2 : place + 4]] == [
        ["1", "0", "±", "0", "1", "±", "0"],
        ["2", "0", "±", "0", "1", "±", "0"],
    ]


def test_episodes_that_are_all_the_same_are_warned_of(root: Path) -> None:
    alike = "2 pairings (row-column) brought the same returns in all episodes: 1-2, 2-1."
    assert any(line.startswith(alike) for line in told(root, ["one@1", "one@2"], width=200, episodes=2))
    assert not any("same returns" in line for line in told(root, ["one@1", "one@2"], width=200, episodes=1))
    drawn = told(root, ["one@1", "one@4"], width=200, episodes=9, drawn=True)
    assert not any("same returns" in line for line in drawn)


def test_pairing_that_repeats_itself_is_named_though_others_vary() -> None:
    sides = Side("first", ("a",)), Side("second", ("b",))
    table = PayoffTable.empty("xyz", "xyz")
    for row, column in itertools.permutations("xyz", 2):
        # The mean of three times 0.1 is not 0.1.
        second = 0.1 if row + column == "yx" else 0.3
        table.add(row, column, np.array([[0.1, -0.1], [0.1, -0.1], [second, -second]]))
    found = Played(table, table.without_sides(), alike=True, unfinished=0, most_steps=9, undrawn=())
    (line,) = (line for line in lines_of(sides, Conditions(3), found, 300) if "same returns" in line)
    assert line.startswith("1 pairing (row-column) brought the same returns in all episodes: 2-1. If that is one")
    assert line.endswith("--draw-actions draws actions as the policies weigh them.")


def test_rule_that_says_how_it_acts_in_evaluation_is_not_changed_by_drawing(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "one", tmp_path / "one")
    rule = {"algorithm": {"kind": "dqn"}, "network": {"kind": "mlp"}, "batch": {"fragments": 4}, "replay": {}}
    job = job_of(policies={"default": rule})
    values = make_run(tmp_path, job, "values")
    _, plan = make_attempt(values, job)
    for updates in (1, 2):
        write_parameters(values, plan, updates, {"default": initial_parameters(plan, "default")})
    likely, drawn = (
        told(tmp_path, ["values@1", "values@2", "one@4"], width=300, episodes=9, drawn=drawn) for drawn in (False, True)
    )
    assert not any("does not change" in line for line in likely)
    alike = "2 pairings (row-column) brought the same returns in all episodes: 1-2, 2-1. If that is one"
    assert any(line.startswith(alike) for line in drawn)
    unchanged = "--draw-actions does not change values@1, values@2: the learning rule says how its policy acts"
    assert any(line.startswith(unchanged) for line in drawn)


def test_result_has_everything_as_plain_data(root: Path) -> None:
    contestants, sides = contestants_of([find_checkpoint(root, name) for name in PURE[:2]], ())
    conditions = Conditions(4, seed=2)
    result = result_of(
        contestants, sides, conditions, play(contestants, sides, conditions, ProgressLine(io.StringIO()))
    )
    assert result["players"][1] == {"name": "one@2", "checkpoint": "updates-000000002.h5", "updates": 2}
    assert result["sides"] == [{"name": name, "agents": [name]} for name in ("agent_0", "agent_1")]
    assert result["games"]["wins"] == [[0, 0], [8, 0]]
    assert result["by_side"]["mean_returns"][0][1][0] == 1.0
    assert result["by_side"]["win_rates_low"][1][0] == pytest.approx(0.51, abs=0.01)
    assert result["ratings"]["low"][1] < result["ratings"]["values"][1] < result["ratings"]["high"][1]
    assert (result["seed"], result["episodes"], result["unfinished"], result["alike"]) == (2, 4, 0, True)
