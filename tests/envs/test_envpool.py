"""Environments of EnvPool itself; what needs no package is in test_envpool_pools.py."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from envs.envpool import Settings, build
from srlhpc.doctor.random_play import Seen, keep, random_actions
from srlhpc.environment import ArraySpec, Continuous, Discrete, Environment, Stack
from srlhpc.errors import UserError
from tests.environment_conformance import EnvironmentConformance

envpool = pytest.importorskip("envpool")


class TestCartPole(EnvironmentConformance):
    settings = {"factory": "envpool", "id": "CartPole-v1", "num_threads": 2}


class TestHalfCheetah(EnvironmentConformance):
    settings = {"factory": "envpool", "id": "HalfCheetah-v5", "kwargs": {"max_episode_steps": 30}}


class TestCheetahRun(EnvironmentConformance):
    settings = {"factory": "envpool", "id": "CheetahRun-v1", "kwargs": {"max_episode_steps": 30}}


class TestGame2048(EnvironmentConformance):
    """A mask in a Dict observation."""

    settings = {"factory": "envpool", "id": "Game2048-v1"}
    steps = 300


class TestMiniGrid(EnvironmentConformance):
    settings = {"factory": "envpool", "id": "MiniGrid-DoorKey-5x5-v0", "kwargs": {"max_episode_steps": 40}}


class TestPong(EnvironmentConformance):
    settings = {
        "factory": "envpool",
        "id": "Pong-v5",
        "kwargs": {"max_episode_steps": 25, "repeat_action_probability": 0.25},
    }
    num_environments = 2
    steps = 60


class TestBreakoutLives(EnvironmentConformance):
    settings = {"factory": "envpool", "id": "Breakout-v5", "kwargs": {"episodic_life": True}}
    num_environments = 2
    steps = 150
    # Games are reported, not lives.
    test_episodes_are_reported_once_with_their_steps_and_returns = None


def make(name: str, num_environments: int = 2, **kwargs: Any) -> Environment:
    return build(Settings(factory="envpool", id=name, kwargs=kwargs), num_environments, 0)


def play(environment: Environment, steps: int, seed: int = 3) -> list[Seen]:
    random, seen = np.random.default_rng(0), [keep(environment.reset(seed))]
    for _ in range(steps):
        seen.append(keep(environment.step(random_actions(environment.spaces, seen[-1], random))))
    return seen


def seeds(seed: int, num_environments: int) -> list[int]:
    return (np.random.SeedSequence(seed).generate_state(num_environments) >> 1).tolist()


def test_steps_are_those_of_the_package_alone() -> None:
    ours, alone = make("HalfCheetah-v5"), envpool.make_gymnasium("HalfCheetah-v5", num_envs=2, seed=seeds(3, 2))
    now, (raw, _) = ours.reset(3).kinds["agent"], alone.reset()
    for action in np.random.default_rng(0).uniform(-1, 1, (50, 2, 6)).astype(np.float32):
        np.testing.assert_array_equal(now.observations["obs"][:, 0], raw.astype(np.float32))
        now = ours.step({"agent": action[:, None]}).kinds["agent"]
        raw, rewards, *_ = alone.step(action.astype(np.float64))
        np.testing.assert_array_equal(now.rewards[:, 0], rewards.astype(np.float32))


def test_environments_have_seeds_of_their_own_whatever_their_number() -> None:
    few, many = (make("CartPole-v1", number).reset(5).kinds["agent"].observations["obs"] for number in (2, 3))
    np.testing.assert_array_equal(few, many[:2])
    assert (few[0] != few[1]).all()


def test_limit_of_minus_one_is_none_and_null_is_the_ids_own() -> None:
    def lengths(**kwargs: Any) -> set[int]:
        environment = make("Pendulum-v1", 1, **kwargs)
        return {episode.steps for step in play(environment, 450) for episode in step.episodes}

    assert lengths(max_episode_steps=None) == {200}
    assert lengths(max_episode_steps=-1) == set()
    assert lengths(max_episode_steps=7) == {7}


def test_limit_of_steps_truncates() -> None:
    last = play(make("Pong-v5", 1, max_episode_steps=20), 20)[-1].kinds["agent"]
    assert (last.truncated.item(), last.terminated.item()) == (True, False)


def test_spaces_are_what_the_id_shows_and_takes() -> None:
    (pong,) = make("Pong-v5", full_action_space=True, frame_skip=2).spaces.kinds
    assert (pong.observations, pong.actions) == ({"obs": ArraySpec((4, 84, 84), "uint8")}, Discrete(18))
    assert pong.stacks == {"obs": Stack(4, "newest")}
    assert make("Pong-v5", frame_skip=2).spaces.frames_per_step == 2
    (run,) = make("CheetahRun-v1").spaces.kinds
    assert run.observations == {"position": ArraySpec((8,), "float32"), "velocity": ArraySpec((9,), "float32")}
    assert run.actions == Continuous(6)


@pytest.mark.parametrize(("kwargs", "frames"), [({"stack_num": 1}, 1), ({"gray_scale": False}, 12)])
def test_observation_that_is_no_stack_of_grey_frames_is_not_declared_as_one(
    kwargs: dict[str, Any], frames: int
) -> None:
    environment = make("Pong-v5", 1, **kwargs)
    (kind,) = environment.spaces.kinds
    assert (kind.stacks, kind.observations["obs"].shape[0]) == ({}, frames)
    play(environment, 3)


def test_learner_sees_signs_of_rewards_but_returns_are_true_scores() -> None:
    seen = play(make("MsPacman-v5", reward_clip=True, max_episode_steps=200), 220)
    rewards = np.array([step.kinds["agent"].rewards for step in seen])
    scores = [episode.returns["agent"] for step in seen for episode in step.episodes]
    assert set(np.unique(rewards)) == {0.0, 1.0}
    assert scores
    assert all(score >= 10 and score % 10 == 0 for score in scores)


def test_lost_life_ends_the_learners_episode_but_not_the_game() -> None:
    seen = play(make("Breakout-v5", episodic_life=True), 400)
    ends = sum(int(step.kinds["agent"].terminated.sum()) for step in seen)
    games = sum(len(step.episodes) for step in seen)
    assert games
    # A game has 5 lives; in each environment one game is still under way.
    assert 5 * games <= ends <= 5 * (games + 2)


def test_game_that_ends_in_the_idle_frames_after_a_lost_life_begins_a_stack() -> None:
    environment = make("RoadRunner-v5", 8, episodic_life=True)
    step, random, late = environment.reset(2), np.random.default_rng(0), 0
    (kind,) = environment.spaces.kinds
    while not late:
        before = keep(step).kinds["agent"].observations["obs"]
        step = environment.step({"agent": random.integers(kind.actions.mask_size, size=(8, 1))})
        now = step.kinds["agent"]
        shown, goes_on = now.observations["obs"], ~now.new_stacks
        np.testing.assert_array_equal(shown[goes_on][:, :-1], before[goes_on][:, 1:])
        late = sum(bool(now.first[episode.environment, 0]) for episode in step.episodes)
    (begins,) = shown[now.new_stacks]
    assert (begins == begins[-1:]).all()


@pytest.mark.parametrize(
    ("name", "kwargs", "complaint"),
    [
        ("pong", {}, "EnvPool knows no environment 'pong'; did you mean 'Pong-v5'"),
        ("my_lab.envs:Maze-v0", {}, r"'my_lab.envs:Maze-v0'; envpool.list_all_envs\(\) names"),
        ("Pong-v5", {"stack": 4}, r"kwargs\.stack: 'Pong-v5' has no such option; did you mean 'stack_num'"),
        ("Pong-v5", {"seed": 4}, r"kwargs\.seed: seeds follow from the job's seed"),
        ("Pong-v5", {"num_envs": 4}, r"kwargs\.num_envs: actors\.environments says"),
        ("Pong-v5", {"noop_max": 0}, r"kwargs\.noop_max: is 0; it must be a whole number of at least 1"),
        ("Pong-v5", {"reward_clip": "on"}, r"kwargs\.reward_clip: is 'on'; it must be true or false"),
        ("Pong-v5", {"stack_num": 4.5}, r"kwargs\.stack_num: is 4\.5; it must be a whole number"),
        ("CartPole-v1", {"max_episode_steps": 0}, "max_episode_steps: is 0; it must be a whole number of at least 1"),
        (
            "CartPole-v1",
            {"from_pixels": True},
            "'CartPole-v1': EnvPool cannot make it: ValueError: from_pixels=True is",
        ),
        ("Go9x9-v1", {}, "'Go9x9-v1' is played by 2 agents at once; here one"),
    ],
)
def test_what_envpool_cannot_make_is_refused_in_words(name: str, kwargs: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        make(name, **kwargs)


def test_options_may_be_whole_numbers_for_floats_and_lists() -> None:
    make("Pong-v5", 1, repeat_action_probability=1)
    make("MiniGrid-Empty-5x5-v0", 1, agent_start_pos=[2, 2]).reset(0)


@pytest.mark.parametrize(("name", "shape"), [("Pong-v5", (210, 160, 3)), ("CartPole-v1", (400, 600, 3))])
def test_render_gives_a_picture_only_when_asked(name: str, shape: tuple[int, ...]) -> None:
    quiet, drawing = make(name), build(Settings(factory="envpool", id=name), 2, 0, render=True)
    quiet.reset(0), drawing.reset(0)
    picture = drawing.render()
    assert quiet.render() is None
    assert picture is not None
    assert (picture.shape, picture.dtype) == (shape, np.uint8)


def test_threads_of_earlier_pools_end() -> None:
    script = (
        "import os, warnings; from envs.envpool import Settings, build\n"
        "environment = build(Settings(factory='envpool', id='CartPole-v1'), 2, 0)\n"
        "for seed in range(20): environment.reset(seed)\n"
        "print(len(os.listdir('/proc/self/task')))\n"
        "environment.close(); print(len(os.listdir('/proc/self/task')))"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    while_open, after = map(int, done.stdout.split())
    assert (while_open - after, after) == (2, 1)
