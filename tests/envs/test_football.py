"""Google Football, where it is built; its views and rings everywhere."""

from __future__ import annotations

import importlib.util
from typing import Any, ClassVar

import numpy as np
import pytest

from envs import football
from envs._football_drawing import draw
from envs._football_views import MAP, NUMBERS, write_map, write_numbers
from envs.football import Settings, build
from srlhpc.environment import Environment
from srlhpc.errors import UserError
from tests.environment_conformance import EnvironmentConformance

needs_the_engine = pytest.mark.skipif(
    importlib.util.find_spec("gfootball") is None, reason="needs the package gfootball"
)


def seen(**changes: Any) -> dict[str, Any]:
    """What an engine shows of two against one, of whom the left ones are controlled."""
    shown = {
        "left_team": np.array([[-1.0, 0.0], [0.5, 0.1]]),
        "left_team_direction": np.array([[0.01, 0.0], [0.0, 0.02]]),
        "right_team": np.array([[1.0, 0.2]]),
        "right_team_direction": np.array([[-0.03, 0.0]]),
        "ball": np.array([0.5, 0.1, 0.2]),
        "ball_direction": np.array([0.1, 0.2, 0.3]),
        "ball_owned_team": 0,
        "ball_owned_player": 1,
        "left_agent_controlled_player": [0, 1],
        "right_agent_controlled_player": [],
        "game_mode": 3,
        "score": [0, 0],
        "steps_left": 400,
    }
    return {**shown, **changes}


def test_numbers_are_those_of_simple115v2() -> None:
    out = np.zeros((2, NUMBERS), np.float32)
    write_numbers(seen(), out)
    first, second = out
    np.testing.assert_allclose(first[:4], [-1.0, 0.0, 0.5, 0.1])
    np.testing.assert_array_equal(first[4:22], -1.0)
    np.testing.assert_allclose(first[22:26], [0.01, 0.0, 0.0, 0.02])
    np.testing.assert_allclose(first[44:46], [1.0, 0.2])
    np.testing.assert_array_equal(first[46:66], -1.0)
    np.testing.assert_allclose(first[66:68], [-0.03, 0.0])
    np.testing.assert_allclose(first[88:94], [0.5, 0.1, 0.2, 0.1, 0.2, 0.3])
    assert first[94:97].tolist() == [0, 1, 0]
    assert (first[97:108].argmax(), second[97:108].argmax()) == (0, 1)
    assert first[97:108].sum() == second[97:108].sum() == 1
    assert first[108:].tolist() == [0, 0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize(("owner", "place"), [(-1, 0), (0, 1), (1, 2)])
def test_who_has_the_ball_is_told_by_team(owner: int, place: int) -> None:
    out = np.zeros((2, NUMBERS), np.float32)
    write_numbers(seen(ball_owned_team=owner), out)
    assert out[0, 94:97].argmax() == place


def test_map_has_a_layer_for_teams_ball_and_oneself() -> None:
    out = np.zeros((2, *MAP), np.uint8)
    write_map(seen(), out)
    assert [np.count_nonzero(layer) for layer in out[0]] == [2, 1, 1, 1]
    assert out[0, 3, 36, 0] == out[1, 3, 44, 72] == 255


def test_field_is_drawn() -> None:
    picture = draw(seen())
    assert picture.shape == (300, 660, 3)
    assert picture.dtype == np.uint8
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 4


@pytest.mark.skipif(importlib.util.find_spec("gfootball") is not None, reason="it is built here")
def test_how_to_build_it_is_said_where_it_is_not() -> None:
    with pytest.raises(UserError, match=r"needs 'gfootball', which .* has to be built: sh .*_football_build.sh"):
        build(Settings(factory="football", level="5_vs_5"), 1, 1)


def test_nobody_to_control_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(football, "missing_packages", lambda _: [])
    with pytest.raises(UserError, match="left_players: is 0, as right_players is, so nobody would learn"):
        build(Settings(factory="football", level="5_vs_5", left_players=0), 1, 1)


# --- with the engine -------------------------------------------------------------------------------------------------


def made(level: str = "academy_empty_goal_close", **options: Any) -> Environment:
    return build(Settings(factory="football", level=level, **options), 2, 1)


@needs_the_engine
class TestDrill(EnvironmentConformance):
    settings = {"factory": "football", "level": "academy_empty_goal_close"}
    num_environments: ClassVar[int] = 2
    steps: ClassVar[int] = 150


@needs_the_engine
class TestBothTeams(EnvironmentConformance):
    settings = {
        "factory": "football", "level": "academy_3_vs_1_with_keeper", "left_players": 3, "representation": "minimap",
        "checkpoints": True,
    }  # fmt: skip
    num_environments: ClassVar[int] = 2
    steps: ClassVar[int] = 150
    returns_are_rewards: ClassVar[bool] = False


@needs_the_engine
def test_level_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"no level 'academy_empty_gaol_close'.*did you mean 'academy_empty_goal_close'"
    ):
        made("academy_empty_gaol_close")


@needs_the_engine
def test_right_team_sees_the_field_turned_round() -> None:
    environment = made("5_vs_5", left_players=4, right_players=4)
    step = environment.reset(1).kinds["player"]
    ball = step.observations["obs"][0][:, 88:91]
    np.testing.assert_allclose(ball[:4, :2], -ball[4:, :2], atol=1e-6)
    assert step.observations["time_left"].max() == 1.0
    environment.close()


@needs_the_engine
def test_episodes_are_not_logged_one_by_one(caplog: pytest.LogCaptureFixture) -> None:
    environment = made()
    environment.reset(1)
    with caplog.at_level("INFO"):
        ended = [episode for _ in range(200) for episode in environment.step({"player": np.full((2, 1), 5)}).episodes]
    environment.close()
    assert ended
    assert caplog.records == []


@needs_the_engine
def test_goal_before_an_empty_goal_is_told() -> None:
    """Running right and shooting scores; a goal brings all rings, and returns are goals alone."""
    environment = made(checkpoints=True)
    environment.reset(1)
    shot, right = 12, 5
    episodes, rewards = [], 0.0
    for time in range(120):
        action = shot if time % 15 == 14 else right
        step = environment.step({"player": np.full((2, 1), action)})
        rewards += float(step.kinds["player"].rewards.sum())
        episodes += list(step.episodes)
    goals = [episode for episode in episodes if episode.metrics["goals_left"]]
    assert goals
    assert {episode.returns["left_0"] for episode in goals} == {1.0}
    assert {episode.metrics["left_won"] for episode in goals} == {1.0}
    assert rewards >= 2.0 * len(goals) - 1e-5
    environment.close()
