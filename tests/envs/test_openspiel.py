"""Games of OpenSpiel."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from envs.openspiel import Settings, build
from srlhpc.doctor.random_play import keep
from srlhpc.environment import Environment, KindStep
from srlhpc.errors import UserError
from tests.environment_conformance import EnvironmentConformance

pytest.importorskip("pyspiel")


class TestTicTacToe(EnvironmentConformance):
    settings: ClassVar = {"factory": "openspiel", "game": "tic_tac_toe"}
    is_random = False
    offers_state = True
    steps = 40


class TestKuhnPokerOfThree(EnvironmentConformance):
    settings: ClassVar = {"factory": "openspiel", "game": "kuhn_poker", "parameters": {"players": 3}}
    offers_state = True
    steps = 40


class TestLeducPoker(EnvironmentConformance):
    settings: ClassVar = {"factory": "openspiel", "game": "leduc_poker"}
    offers_state = True
    steps = 40


class TestRockPaperScissors(EnvironmentConformance):
    """Players who choose at once do so one after the other."""

    settings: ClassVar = {"factory": "openspiel", "game": "matrix_rps"}
    is_random = False
    offers_state = True
    steps = 10
    # Nothing is seen of the other's choice.
    test_environments_differ = None


class TestGameOfOne(EnvironmentConformance):
    settings: ClassVar = {"factory": "openspiel", "game": "catch", "parameters": {"rows": 5, "columns": 3}}
    offers_state = True
    steps = 30


def made(game: str, number: int = 1, **more: Any) -> Environment:
    return build(Settings.model_validate({"factory": "openspiel", "game": game, **more}), number, 0)


def played(environment: Environment, *moves: int) -> list[KindStep]:
    """The step after each move of whoever's turn it is."""
    players = len(environment.spaces.kinds[0].agents)
    return [keep(environment.step({"player": np.full((1, players), move)})).kinds["player"] for move in moves]


def test_tic_tac_toe_ends_for_both_and_begins_anew() -> None:
    environment = made("tic_tac_toe")
    first = environment.reset(0).kinds["player"]
    assert first.observations["obs"].shape == (1, 2, 3, 3, 3)
    assert first.observations["seat"][0].tolist() == [[1, 0], [0, 1]]
    assert first.valid.tolist() == [[True, False]]
    *_, end = played(environment, 0, 3, 1, 4)
    assert end.action_masks is not None
    assert end.action_masks[0].tolist() == [
        [cell in (2, 5, 6, 7, 8) for cell in range(9)],
        [True] * 9,
    ]
    step = environment.step({"player": np.array([[2, 0]])})
    assert step.kinds["player"].rewards.tolist() == [[1, -1]]
    assert step.kinds["player"].terminated.all()
    (episode,) = step.episodes
    assert episode.steps == 5
    assert episode.metrics == {"return_player_0": 1, "return_player_1": -1}
    (again,) = played(environment, 0)
    assert again.first.tolist() == [[True, False]]


def test_leduc_counts_every_bet_once_whatever_chance_does_between() -> None:
    environment = made("leduc_poker")
    environment.reset(3)
    total = np.zeros(2)
    # Both call twice, before and after the public card.
    steps = played(environment, 1, 1, 1, 1)
    for now in steps:
        total += now.rewards[0]
    assert steps[-1].terminated.all()
    assert sorted(total.tolist()) in ([-1, 1], [0, 0])


def test_players_see_their_own_cards_alone() -> None:
    environment = made("kuhn_poker", 64)
    shown = environment.reset(1).kinds["player"].observations["obs"]
    assert shown.shape == (64, 2, 11)
    assert {tuple(row) for row in shown[:, 0, 2:5].tolist()} == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}
    assert (shown[:, 0, 2:5] * shown[:, 1, 2:5] == 0).all()
    short = made("kuhn_poker", shown="observation").spaces.kinds[0]
    assert short.observations["obs"].shape == (7,)


def test_turns_are_as_far_apart_as_players_and_rounds_make_them() -> None:
    assert made("leduc_poker").spaces.kinds[0].turn_steps == 3
    assert made("kuhn_poker", parameters={"players": 3}).spaces.kinds[0].turn_steps == 5
    assert made("tic_tac_toe", turn_steps=2).spaces.kinds[0].turn_steps == 2
    assert made("catch").spaces.kinds[0].turn_steps == 1


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"game": "tictactoe"}, "environment.game: OpenSpiel has no game 'tictactoe'; did you mean 'tic_tac_toe'"),
        ({"game": "kuhn_poker", "parameters": {"player": 3}}, "environment.parameters of 'kuhn_poker': Unknown param"),
        ({"game": "kuhn_poker", "parameters": {"players": "3"}}, "Wrong type for parameter players"),
        ({"game": "coin_game"}, "environment.game: 'coin_game' shows its players no tensor; choose another game"),
        ({"game": "tic_tac_toe", "shown": "information_state"}, "'tic_tac_toe' has only the observation; leave shown"),
        ({"game": "negotiation"}, "'negotiation' draws its chance by itself, which no seed repeats"),
        ({"game": "mfg_garnet"}, "'mfg_garnet' has no single players who act"),
    ],
)
def test_games_that_cannot_be_played_are_refused(
    settings: dict[str, Any], text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError) as caught:
        made(**settings)
    assert text in str(caught.value)
    assert capfd.readouterr() == ("", "")
