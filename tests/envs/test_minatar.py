from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from envs._minatar_games import GAMES
from envs.minatar import Settings, build
from srlhpc.doctor.random_play import keep, random_actions
from srlhpc.environment import Environment, Step
from tests.environment_conformance import EnvironmentConformance

minatar = pytest.importorskip("minatar")


class TestBreakout(EnvironmentConformance):
    settings = {"factory": "minatar", "game": "breakout", "full_action_space": False}
    offers_state = True


class TestSpaceInvaders(EnvironmentConformance):
    settings = {"factory": "minatar", "game": "space_invaders"}
    offers_state = True
    steps = 300


class TestAsterix(EnvironmentConformance):
    settings = {"factory": "minatar", "game": "asterix", "max_frames": 60}
    offers_state = True


class TestSeaquest(EnvironmentConformance):
    settings = {"factory": "minatar", "game": "seaquest", "sticky_actions": 0.0}
    offers_state = True


class TestFreeway(EnvironmentConformance):
    settings = {"factory": "minatar", "game": "freeway", "max_frames": 40}
    offers_state = True


def make(game: str, num_environments: int = 1, **chosen: Any) -> Environment:
    return build(Settings(factory="minatar", game=game, **chosen), num_environments, 0)


def play(environment: Environment, action: int) -> Step:
    return environment.step({"agent": np.full((environment.num_environments, 1), action)})


def package_game(game: str, seed: int, **chosen: Any) -> Any:
    """The package's own game, started as an environment of ours starts its first one."""
    alone = minatar.Environment(game, **chosen)
    alone.seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
    alone.reset()
    return alone


def as_we_show(alone: Any) -> np.ndarray:
    return np.moveaxis(alone.state(), -1, 0)[None, None] * np.uint8(255)


@given(
    game=st.sampled_from(sorted(GAMES)),
    seed=st.integers(0, 2**31),
    sticky=st.sampled_from([0.0, 0.1, 0.5]),
    ramping=st.booleans(),
    moves=st.lists(st.integers(0, 5), min_size=1, max_size=200),
)
@settings(max_examples=60, deadline=None)
def test_every_game_goes_as_the_package_alone_plays_it(
    game: str, seed: int, sticky: float, ramping: bool, moves: list[int]
) -> None:
    ours = make(game, sticky_actions=sticky, difficulty_ramping=ramping)
    alone = package_game(game, seed, sticky_action_prob=sticky, difficulty_ramping=ramping)
    now = ours.reset(seed).kinds["agent"]
    np.testing.assert_array_equal(now.observations["obs"], as_we_show(alone))
    for move in moves:
        reward, over = alone.act(move)
        now = play(ours, move).kinds["agent"]
        assert (now.rewards.item(), now.terminated.item()) == (reward, over)
        np.testing.assert_array_equal(now.observations["obs"], as_we_show(alone))
        if over:
            alone.reset()
            now = play(ours, 5).kinds["agent"]
            assert now.first.item()
            np.testing.assert_array_equal(now.observations["obs"], as_we_show(alone))


@pytest.mark.parametrize("game", GAMES)
def test_spaces_are_those_of_the_package(game: str) -> None:
    alone = package_game(game, 0)
    for full in (True, False):
        kind = Settings(factory="minatar", game=game, full_action_space=full).spaces().kinds[0]
        actions = range(alone.num_actions()) if full else alone.minimal_action_set()
        assert kind.actions.mask_size == len(actions)
        assert [*kind.observations["obs"].shape] == [alone.state_shape()[2], *alone.state_shape()[:2]]
    assert list(GAMES[game].minimal_actions) == alone.minimal_action_set()


@pytest.mark.parametrize("game", GAMES)
def test_minimal_actions_do_what_they_do_in_the_full_set(game: str) -> None:
    full, minimal = make(game, sticky_actions=0.0), make(game, sticky_actions=0.0, full_action_space=False)
    full.reset(3), minimal.reset(3)
    for _ in range(4):
        for index, action in enumerate(GAMES[game].minimal_actions):
            left, right = play(full, action).kinds["agent"], play(minimal, index).kinds["agent"]
            np.testing.assert_array_equal(left.observations["obs"], right.observations["obs"])


def test_end_of_freeway_is_a_cut_after_2501_frames() -> None:
    environment = make("freeway")
    environment.reset(0)
    for _ in range(2500):
        now = play(environment, 0).kinds["agent"]
        assert now.valid.item()
    now = play(environment, 0).kinds["agent"]
    assert (now.truncated.item(), now.terminated.item()) == (True, False)


def test_limit_of_frames_cuts_games_that_are_not_over() -> None:
    environment = make("freeway", 2, max_frames=7)
    environment.reset(0)
    lengths = [episode.steps for _ in range(24) for episode in play(environment, 2).episodes]
    assert lengths == [7] * 6


def test_limit_and_end_at_once_is_an_end() -> None:
    first = make("breakout", sticky_actions=0.0)
    first.reset(0)
    steps = 1
    while not play(first, 1).kinds["agent"].terminated.item():
        steps += 1
    cut = make("breakout", sticky_actions=0.0, max_frames=steps)
    cut.reset(0)
    last = [keep(play(cut, 1)).kinds["agent"] for _ in range(steps)][-1]
    assert (last.terminated.item(), last.truncated.item()) == (True, False)


def test_saved_state_holds_no_objects_and_is_not_changed_by_play() -> None:
    environment = make("seaquest", 3)
    now = keep(environment.reset(1))
    random = np.random.default_rng(0)
    for _ in range(50):
        now = keep(environment.step(random_actions(environment.spaces, now, random)))
    state = environment.save_state()
    assert state is not None
    kept = {name: array.copy() for name, array in state.items()}
    for _ in range(20):
        now = keep(environment.step(random_actions(environment.spaces, now, random)))
    for name, array in state.items():
        assert array.dtype != object
        np.testing.assert_array_equal(array, kept[name])


def test_game_loads_nothing_that_draws_windows() -> None:
    script = (
        "import sys; from envs.minatar import Settings, build; "
        "build(Settings(factory='minatar', game='breakout'), 1, 0).reset(0); "
        "print([name for name in ('torch', 'pandas', 'seaborn', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_state_that_cannot_be_saved_exactly_is_refused() -> None:
    environment = make("breakout")
    environment._games[0]._simulator.ghost = object()
    with pytest.raises(TypeError, match="keeps a object"):
        environment.save_state()


def test_unknown_game_names_those_there_are() -> None:
    with pytest.raises(ValidationError, match="'breakout'.*'space_invaders'"):
        Settings(factory="minatar", game="pong")


def test_render_gives_a_picture_only_when_asked() -> None:
    quiet, drawing = make("breakout"), build(Settings(factory="minatar", game="breakout"), 1, 0, render=True)
    quiet.reset(0), drawing.reset(0)
    picture = drawing.render()
    assert quiet.render() is None
    assert picture is not None
    assert (picture.shape, picture.dtype) == ((320, 320, 3), np.uint8)
    # Nothing above the three rows of bricks, which have one colour.
    assert not picture[:32].any()
    assert len(np.unique(picture[32:128].reshape(-1, 3), axis=0)) == 1
