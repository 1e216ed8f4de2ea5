from __future__ import annotations

import numpy as np
import pytest

from envs.catch import Settings, build
from tests.environment_conformance import EnvironmentConformance


class TestCatch(EnvironmentConformance):
    settings = {"factory": "catch", "rows": 4, "columns": 5}
    num_environments = 8
    offers_state = True


def play_against(side: int) -> list[float]:
    """Returns of 16 environments whose paddle follows the ball (1) or flees from it (-1)."""
    environment = build(Settings(factory="catch", rows=10, columns=5), 16, 0)
    step = environment.reset(3)
    while not step.episodes:
        board = step.kinds["agent"].observations["obs"].reshape(16, 10, 5)
        ball, paddle = board[:, :-1].any(axis=1).argmax(axis=1), board[:, -1].argmax(axis=1)
        move = np.sign(ball - paddle) if side == 1 else np.where(ball >= paddle, -1, 1)
        step = environment.step({"agent": (1 + move)[:, None]})
    return [episode.returns["agent"] for episode in step.episodes]


def test_paddle_that_follows_the_ball_always_catches_it() -> None:
    assert play_against(1) == [1.0] * 16


def test_paddle_that_flees_from_the_ball_always_misses_it() -> None:
    assert play_against(-1) == [-1.0] * 16


def test_episode_has_one_step_less_than_rows() -> None:
    environment = build(Settings(factory="catch", rows=4), 1, 0)
    environment.reset(0)
    stay = {"agent": np.ones((1, 1), np.int64)}
    steps = [environment.step(stay) for _ in range(3)]
    assert [len(step.episodes) for step in steps] == [0, 0, 1]
    assert steps[-1].episodes[0].steps == 3


def test_last_observation_shows_the_ball_on_the_bottom_row() -> None:
    environment = build(Settings(factory="catch", rows=3, columns=3), 8, 0)
    step = environment.reset(0)
    columns = step.kinds["agent"].observations["obs"].reshape(8, 3, 3)[:, 0].argmax(axis=1)
    for _ in range(2):
        step = environment.step({"agent": np.ones((8, 1), np.int64)})
    bottom = step.kinds["agent"].observations["obs"].reshape(8, 3, 3)[:, -1]
    assert bottom[np.arange(8), columns].all()
    assert bottom[:, 1].all()


@pytest.mark.parametrize("move", [0, 2])
def test_paddle_stops_at_the_walls(move: int) -> None:
    environment = build(Settings(factory="catch", rows=10, columns=3), 1, 0)
    environment.reset(0)
    for _ in range(5):
        step = environment.step({"agent": np.full((1, 1), move)})
    assert step.kinds["agent"].observations["obs"].reshape(10, 3)[-1].tolist() == [move == 0, False, move == 2]


def test_render_draws_only_when_asked() -> None:
    environment = build(Settings(factory="catch", rows=4, columns=5), 1, 0)
    environment.reset(0)
    assert environment.render() is None
    drawing = build(Settings(factory="catch", rows=4, columns=5), 1, 0, render=True)
    drawing.reset(0)
    picture = drawing.render()
    assert picture is not None
    assert (picture.shape, picture.dtype, picture.max()) == ((128, 160, 3), np.uint8, 255)
