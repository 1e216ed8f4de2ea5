"""What an agent's turns bring, by hand, and against sums over its turns alone."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from srlhpc.rl.returns import gae, vtrace
from srlhpc.rl.td import n_step
from srlhpc.rl.turns import OwnTurns, own_turns

NAN = float("nan")
UNUSED = 99.0
"""A value that nothing depends on."""


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float32).unsqueeze(1)


def flags(text: str) -> Tensor:
    """`x` is true."""
    return torch.tensor([letter == "x" for letter in text]).unsqueeze(1)


def turns_of(
    plays: str, rewards: tuple[float, ...], terminated: str = "", truncated: str = "", cut: str = ""
) -> OwnTurns:
    """One column: of each record `a` if the agent acts, `w` if it waits, `l` if its last observation is shown; the last
    letter is that of the observation behind them. Of `terminated`, `truncated` and `cut`, `x` where a record is so."""
    none = "." * len(rewards)
    asked = torch.tensor([letter != "w" for letter in plays]).unsqueeze(1)
    valid = torch.tensor([letter == "a" for letter in plays[:-1]]).unsqueeze(1)
    ends = (flags(text or none) for text in (terminated, truncated, cut))
    return own_turns(column(*rewards), *ends, valid, asked)


def values_of(turns: OwnTurns, values: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """Values of turns and of what follows them, from those of all T + 1 observations."""
    moved = column(*values).gather(0, turns.places)
    return moved[:-1], moved[1:]


def advantages(turns: OwnTurns, values: tuple[float, ...], *, gamma: float = 0.5, lambda_: float = 0.5) -> list[float]:
    now, following = values_of(turns, values)
    found = gae(turns.rewards, now, following, turns.terminated, turns.truncated, gamma=gamma, lambda_=lambda_)
    return found[turns.valid].tolist()


def true_in(flags: Tensor) -> list[bool]:
    found: list[bool] = flags[:, 0].tolist()
    return found


def test_turn_has_all_rewards_until_the_next_one() -> None:
    turns = turns_of("awwaa", (1, 2, 4, 8))
    assert turns.rewards[:, 0].tolist() == [7, 8, 0, 0]
    assert turns.places[:, 0].tolist() == [0, 3, 4, 4, 4]
    assert true_in(turns.valid) == [True, True, False, False]
    assert true_in(turns.cut) == [False, True, False, False]


def test_end_by_the_move_of_another_ends_the_turn_before() -> None:
    turns = turns_of("awlwa", (0.5, -1, NAN, 0), terminated=".x..")
    assert turns.rewards[0, 0] == -0.5
    assert true_in(turns.terminated) == [True, False, False, False]
    assert true_in(turns.valid) == [True, False, False, False]
    # Value 4 of what is shown last counts for nothing: -0.5 - 1.
    assert advantages(turns, (1, UNUSED, 4, UNUSED, UNUSED)) == [-1.5]


def test_two_players_of_whom_the_second_wins() -> None:
    # Own turns of the first at 0, 2, 4, of the second at 1, 3, 5; 5 wins. Values 1 and 2 of turns, gamma, lambda 0.5.
    loses = turns_of("awawawl", (0, 0, 0, 0, 0, -1), terminated=".....x")
    wins = turns_of("wawawal", (0, 0, 0, 0, 0, 1), terminated=".....x")
    # deltas 0 + 0.5 - 1, 0 + 0.5 - 1, -1 - 1; decay 0.25.
    assert advantages(loses, (1, UNUSED, 1, UNUSED, 1, UNUSED, 9)) == [-0.75, -1.0, -2.0]
    # deltas 0 + 1 - 2, the same, 1 - 2.
    assert advantages(wins, (UNUSED, 2, UNUSED, 2, UNUSED, 2, 9)) == [-1.3125, -1.25, -1.0]


def test_three_players_count_their_own_turns_alone() -> None:
    # The first passes a turn at 6: between 3 and 9 there are five others' records.
    plays = "awwawwwwwal"
    turns = turns_of(plays, (0, 1, 0, 0, 0, 2, 0, 0, 0, 4), terminated=".........x")
    assert turns.rewards[:3, 0].tolist() == [1, 2, 4]
    values = (2, *[UNUSED] * 2, 4, *[UNUSED] * 5, 8, UNUSED)
    # deltas 1 + 2 - 2, 2 + 4 - 4, 4 - 8; decay 0.25.
    assert advantages(turns, values) == [1.25, 1.0, -4.0]


@pytest.mark.parametrize("plays", ["awla", "awl"])
def test_cut_while_waiting_bootstraps_from_what_is_shown_last(plays: str) -> None:
    records = len(plays) - 1
    turns = turns_of(plays, (1, 2, NAN)[:records], truncated=".x."[:records])
    # 3 + 0.5 * 4 - 1, one discount though two records have passed, whether or not the fragment ends there.
    assert advantages(turns, (1, UNUSED, 4, UNUSED)[: records + 1]) == [4.0]


def test_turn_without_a_known_successor_is_what_others_bootstrap_from() -> None:
    turns = turns_of("awaww", (1, 2, 4, 8))
    assert true_in(turns.valid) == [True, False, False, False]
    assert true_in(turns.truncated) == [True, False, False, False]
    assert not turns.cut.any()
    # 3 + 0.5 * 4 - 1; the second turn's successor is not known yet, and what it may bring is not either.
    assert advantages(turns, (1, UNUSED, 4, UNUSED, UNUSED)) == [4.0]


def test_fragment_that_ends_at_a_turn_bootstraps_from_its_observation() -> None:
    turns = turns_of("awawa", (1, 0, 1, 2))
    # deltas 1 + 2 - 1, 3 + 4 - 4.
    assert advantages(turns, (1, UNUSED, 4, UNUSED, 8)) == [2.75, 3.0]


def test_fragment_that_begins_while_waiting_leaves_out_what_belongs_to_the_one_before() -> None:
    turns = turns_of("wwawa", (8, 16, 1, 2))
    assert turns.rewards[:, 0].tolist() == [3, 0, 0, 0]
    ended = turns_of("wlwaa", (8, 0, 0, 1), terminated="x...")
    assert ended.rewards[:, 0].tolist() == [0, 1, 0, 0]
    assert not ended.terminated.any()
    assert true_in(ended.valid) == [False, True, False, False]


def test_waits_all_the_time_leaves_nothing() -> None:
    turns = turns_of("wwww", (1, 2, 4))
    assert not turns.valid.any()
    assert not turns.rewards.any()
    assert turns.places[:, 0].tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize(("game", "records"), [("al", 1), ("aa", 1), ("awl", 2), ("awa", 2), ("awwwl", 4)])
def test_turn_is_trained_at_so_many_places_of_a_fragment_as_what_comes_of_it_is_near(game: str, records: int) -> None:
    """An own move that ends the game is trained at all of 8, one that the reply ends or another turn follows at 7."""
    trained = 0
    for place in range(8):
        plays = ("w" * place + game + "w" * 8)[:9]
        ends = "".join(".x"[letter == "l"] for letter in plays[1:])
        trained += bool(turns_of(plays, (0,) * 8, terminated=ends).valid[0])
    assert trained == 8 - records + 1


def test_only_turn_of_a_fragment_is_left_for_lack_of_a_successor() -> None:
    assert not turns_of("waww", (1, 2, 4)).valid.any()


def test_episodes_without_a_turn_give_nothing_to_the_turn_before() -> None:
    # It acts, loses by the other's move; the next game ends before its first turn (its early reward is 0 then).
    turns = turns_of("awlwla", (0, -1, 0, 0, 0), terminated=".x.x.")
    assert turns.rewards[:, 0].tolist() == [-1, 0, 0, 0, 0]
    assert true_in(turns.terminated) == [True, False, False, False, False]


def test_agents_that_always_act_keep_their_records() -> None:
    ended = ".x."
    for plays, rewards in (("aaaa", (1.0, 2.0, 4.0)), ("aala", (1.0, 2.0, 0.0))):
        turns = turns_of(plays, rewards, terminated=ended)
        assert turns.places[:, 0].tolist() == [0, 1, 2, 3]
        assert turns.rewards[:, 0].tolist() == list(rewards)
        assert torch.equal(turns.terminated, flags(ended))
        assert torch.equal(turns.valid, flags(plays[:3].replace("a", "x")))
    assert true_in(turns_of("aaaa", (1, 2, 4)).cut) == [False, False, True]


def test_window_that_is_cut_while_waiting_leaves_its_last_turn() -> None:
    # Nothing is stored behind record 3: what follows repeats the observation there.
    assert true_in(turns_of("awawww", (1, 0, 1, 0, 0), cut="...x.").valid) == [True, False, False, False, False]
    at_a_turn = turns_of("awawaa", (1, 0, 1, 0, 0), cut="...x.")
    # The last letters repeat the observation behind the cut, and are not valid in a store.
    assert true_in(at_a_turn.truncated)[:2] == [False, True]


def test_sums_of_n_count_turns() -> None:
    turns = turns_of("awawwaww", (1, 0, 0, 2, 0, 0, 4))
    # The third turn has no successor, so the second is the last that is trained.
    steps = n_step(turns.rewards, turns.terminated, turns.truncated, gamma=0.5, n=2)
    assert steps.sums[turns.valid].tolist() == [1 + 0.5 * 2, 2]
    assert steps.lengths[turns.valid].tolist() == [2, 1]
    assert steps.discounts[turns.valid].tolist() == [0.25, 0.5]
    assert turns.places[2, 0] == 5


def test_v_trace_is_that_of_the_turns() -> None:
    turns = turns_of("awawal", (0, 0, 0, 1, 2), terminated="....x")
    now, following = values_of(turns, (1, UNUSED, 2, UNUSED, 4, UNUSED))
    log_ratios = torch.tensor([2.0, 0.5, 1.0, 1.0, 1.0]).log().unsqueeze(1)
    found = vtrace(log_ratios, turns.rewards, now, following, turns.terminated, turns.truncated, gamma=0.5, lambda_=1.0)
    # rho 1, 0.5, 1: deltas 0 + 1 - 1, 0.5 (1 + 2 - 2), 2 - 4; corrections backwards -2, 0.5 - 0.5, 0 + 0.
    assert found.targets[turns.valid].tolist() == [1.0, 2.0, 2.0]
    assert found.advantages[turns.valid].tolist() == [0.0, 0.5 * (1 + 1 - 2), -2.0]


# --- by definition ---------------------------------------------------------------------------------------------------


@dataclass
class Turn:
    """One turn of an agent, as it happened."""

    record: int
    reward: float = 0.0
    end: str = ""
    after: int | None = None
    """Observation that follows: of the next turn, or the last one of a cut episode; None: not known."""


@dataclass
class Lived:
    """A column, and its turns."""

    plays: str
    rewards: list[float]
    terminated: list[bool]
    truncated: list[bool]
    turns: list[Turn]


def lived(records: int, dice: random.Random) -> Lived:
    """So many records of an agent, and one observation more, with random turns, rewards and ends."""
    plays, rewards, terminated, truncated, turns = "", [], [], [], []
    last: Turn | None = None
    over = False
    for t in range(records + 1):
        letter = "l" if over else dice.choice("aw")
        if letter == "a" and last is not None:
            last.after = t
        if t == records:
            return Lived(plays + letter, rewards, terminated, truncated, turns)
        plays += letter
        if over:
            over = False
            rewards.append(NAN)
            ends = ""
        else:
            if letter == "a":
                last = Turn(t)
                turns.append(last)
            # What comes before a first turn is moved by actors.
            reward = float(dice.randint(-4, 4)) if last is not None or t < 3 else 0.0
            rewards.append(reward)
            ends = dice.choice([""] * 5 + ["terminated", "truncated"])
            if last is not None:
                last.reward += reward
                last.end = ends
                last.after = t + 1 if ends == "truncated" else None
            over = bool(ends)
            last = None if over else last
        terminated.append(ends == "terminated")
        truncated.append(ends == "truncated")
    raise AssertionError


def expected(column: Lived, values: list[float], gamma: float, lambda_: float) -> dict[int, float]:
    """Record to advantage of every turn that has a successor or an end: sums over the turns alone."""
    known = [turn for turn in column.turns if turn.end or turn.after is not None]
    found = {}
    for first, turn in enumerate(known):
        total, weight = 0.0, 1.0
        for later in known[first:]:
            follows = 0.0 if later.end == "terminated" else values[later.after or 0]
            total += weight * (later.reward + gamma * follows - values[later.record])
            weight *= gamma * lambda_
            if later.end:
                break
        found[turn.record] = total
    return found


@pytest.mark.parametrize("seed", range(20))
def test_advantages_are_sums_over_turns(seed: int) -> None:
    dice = random.Random(seed)
    records = dice.randint(1, 12)
    columns = [lived(records, dice) for _ in range(8)]
    values = [[dice.uniform(-1, 1) for _ in range(records + 1)] for _ in columns]

    def side_by_side(rows: list[list[float]] | list[list[bool]]) -> Tensor:
        return torch.tensor(rows).T

    turns = own_turns(
        side_by_side([column.rewards for column in columns]),
        side_by_side([column.terminated for column in columns]),
        side_by_side([column.truncated for column in columns]),
        torch.zeros(records, len(columns), dtype=torch.bool),
        side_by_side([[letter == "a" for letter in column.plays[:-1]] for column in columns]),
        side_by_side([[letter != "w" for letter in column.plays] for column in columns]),
    )
    moved = side_by_side(values).gather(0, turns.places)
    found = gae(turns.rewards, moved[:-1], moved[1:], turns.terminated, turns.truncated, gamma=0.9, lambda_=0.8)
    for place, column in enumerate(columns):
        mine = {int(turns.places[t, place]): float(found[t, place]) for t in range(records) if turns.valid[t, place]}
        assert mine == pytest.approx(expected(column, values[place], 0.9, 0.8), abs=1e-5)
