"""Hanabi, beside OpenSpiel stepped by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from envs.openspiel import OpenSpiel, Settings, build
from srlhpc.environment import Episode
from tests.environment_conformance import EnvironmentConformance

pyspiel = pytest.importorskip("pyspiel")

PLAYERS = (2, 3, 4, 5)
Choose = Callable[[Any, np.random.Generator], int]
"""Chooses a move of a state by itself."""


class TestOfTwo(EnvironmentConformance):
    settings: ClassVar = {"factory": "openspiel", "game": "hanabi"}
    offers_state = True


class TestOfFive(EnvironmentConformance):
    settings: ClassVar = {"factory": "openspiel", "game": "hanabi", "parameters": {"players": 5}}
    offers_state = True
    num_environments = 2


def fireworks(state: Any) -> int:
    """Cards that are up, of 25."""
    (line,) = [line for line in str(state).splitlines() if line.startswith("Fireworks")]
    return sum(int(mark) for mark in line if mark.isdigit())


def play_beside(players: int, choose: Choose, seed: int) -> Episode:
    """Plays one game, and the same by hand: the state by hand takes the cards that the environment has drawn."""
    ours = build(Settings(factory="openspiel", game="hanabi", parameters={"players": players}), 1, 0)
    assert isinstance(ours, OpenSpiel)
    now = ours.reset(seed).kinds["player"]
    alone = pyspiel.load_game("hanabi", {"players": players}).new_initial_state()
    random = np.random.default_rng(seed)
    while True:
        before = fireworks(alone)
        for move in ours._tables[0]._state.history()[len(alone.history()) :]:
            alone.apply_action(move)
        bombed = "Life tokens: 0" in str(alone)
        brought = -before if bombed else fireworks(alone) - before
        assert now.rewards[0].tolist() == [brought] * players
        if alone.is_terminal():
            break
        mover = alone.current_player()
        assert now.valid[0].tolist() == [player == mover for player in range(players)]
        assert now.action_masks is not None
        assert np.flatnonzero(now.action_masks[0, mover]).tolist() == alone.legal_actions()
        for player in range(players):
            assert now.observations["obs"][0, player].tolist() == alone.observation_tensor(player)
        step = ours.step({"player": np.full((1, players), choose(alone, random))})
        now = step.kinds["player"]
    assert now.terminated.all()
    (episode,) = step.episodes
    assert set(episode.returns.values()) == {alone.returns()[0]}
    return episode


def at_random(state: Any, random: np.random.Generator) -> int:
    return int(random.choice(state.legal_actions()))


def only_what_fits(state: Any, random: np.random.Generator) -> int:
    """Plays a card that brings a point, if there is one in the hand; else no card at all."""
    now = state.returns()[0]
    moves = {move: state.child(move).returns()[0] - now for move in state.legal_actions()}
    good = [move for move, brings in moves.items() if brings > 0]
    harmless = [move for move in moves if not state.action_to_string(move).startswith("(Play")]
    return int(random.choice(good or harmless))


@pytest.mark.parametrize("players", PLAYERS)
def test_a_game_at_random_ends_with_a_bomb_and_a_score_of_0(players: int) -> None:
    episode = play_beside(players, at_random, seed=players)
    assert set(episode.returns.values()) == {0}
    assert (episode.metrics["score"], episode.metrics["bombed"]) == (0, 1)


@pytest.mark.parametrize("players", PLAYERS)
def test_a_game_without_mistakes_scores_its_fireworks(players: int) -> None:
    episode = play_beside(players, only_what_fits, seed=players)
    assert episode.metrics["score"] == episode.metrics["fireworks"] == episode.returns["player_0"] > 5
    assert episode.metrics["bombed"] == 0


def test_fireworks_before_a_bomb_are_told_beside_the_score() -> None:
    last = {"moves": 0}

    def good_then_random(state: Any, random: np.random.Generator) -> int:
        last["moves"] += 1
        return only_what_fits(state, random) if last["moves"] < 20 else at_random(state, random)

    episode = play_beside(2, good_then_random, seed=4)
    assert (episode.metrics["score"], episode.metrics["bombed"]) == (0, 1)
    assert episode.metrics["fireworks"] > 2


def test_other_games_tell_their_returns_alone() -> None:
    environment = build(Settings(factory="openspiel", game="kuhn_poker"), 1, 0)
    environment.reset(0)
    steps = [environment.step({"player": np.zeros((1, 2), np.int64)}) for _ in range(2)]
    (episode,) = steps[-1].episodes
    assert set(episode.metrics) == {"return_player_0", "return_player_1"}
