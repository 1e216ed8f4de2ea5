from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from envs.atari import Settings, build
from srlhpc.environment import Environment
from srlhpc.objects import UserError
from tests.environment_conformance import EnvironmentConformance, Seen, keep, random_actions

pytest.importorskip("ale_py")


class TestPong(EnvironmentConformance):
    settings = {"factory": "atari", "game": "pong", "max_frames": 200}


class TestBreakoutLives(EnvironmentConformance):
    settings = {"factory": "atari", "game": "breakout", "life_loss_terminates": True}
    # Games are reported, not lives.
    test_episodes_are_reported_once_with_their_steps_and_returns = None


class TestStickyActions(EnvironmentConformance):
    settings = {"factory": "atari", "game": "pong", "max_frames": 200, "sticky_actions": 0.25}


def make(copies: int = 4, **settings: Any) -> Environment:
    return build(Settings(factory="atari", **settings), copies, 0)


def play(environment: Environment, steps: int) -> list[Seen]:
    random, seen = np.random.default_rng(0), [keep(environment.reset(3))]
    for _ in range(steps):
        seen.append(keep(environment.step(random_actions(environment.spaces, seen[-1], random))))
    return seen


def test_frame_limit_truncates() -> None:
    last = play(make(1, game="pong", max_frames=80, noop_max=0), 20)[-1].kinds["agent"]
    assert (last.truncated.item(), last.terminated.item()) == (True, False)


def test_learner_sees_clipped_rewards_but_returns_are_true_scores() -> None:
    seen = play(make(game="ms_pacman"), 600)
    rewards = np.array([step.kinds["agent"].rewards for step in seen])
    scores = [episode.returns["agent"] for step in seen for episode in step.episodes]
    assert set(np.unique(rewards)) == {0.0, 1.0}
    assert scores
    assert all(score >= 10 and score % 10 == 0 for score in scores)


def test_rewards_are_scores_when_clipping_is_off() -> None:
    seen = play(make(game="ms_pacman", reward_clip=None), 150)
    assert max(step.kinds["agent"].rewards.max() for step in seen) >= 10


def test_lost_life_ends_the_learners_episode_but_not_the_game() -> None:
    seen = play(make(game="breakout", life_loss_terminates=True), 300)
    ends = sum(int(step.kinds["agent"].terminated.sum()) for step in seen)
    games = sum(len(step.episodes) for step in seen)
    assert games
    # A game has 5 lives; in each copy one game is still under way.
    assert 5 * games <= ends <= 5 * (games + 4)


def test_record_after_a_lost_life_is_invalid_then_a_first_one_follows() -> None:
    seen = play(make(game="breakout", life_loss_terminates=True), 300)
    for before, now, after in zip(seen, seen[1:], seen[2:], strict=False):
        ended = now.kinds["agent"].terminated | now.kinds["agent"].truncated
        assert before.kinds["agent"].valid[ended].all()
        assert not now.kinds["agent"].valid[ended].any()
        assert after.kinds["agent"].first[ended].all()
        assert after.kinds["agent"].valid[ended].all()
        assert not after.kinds["agent"].rewards[ended].any()


def test_full_action_space_has_18_actions() -> None:
    assert make(1, game="pong").spaces.kinds[0].actions.mask_size == 6
    assert make(1, game="pong", full_action_space=True).spaces.kinds[0].actions.mask_size == 18


def test_a_step_is_four_frames() -> None:
    assert make(1, game="pong").spaces.frames_per_step == 4


def test_stack_shifts_by_one_frame_each_step() -> None:
    seen = play(make(1, game="pong"), 5)
    for before, now in zip(seen, seen[1:], strict=False):
        old, new = before.kinds["agent"].observations["obs"], now.kinds["agent"].observations["obs"]
        np.testing.assert_array_equal(new[:, :, :-1], old[:, :, 1:])


def test_unknown_game_names_a_near_one() -> None:
    with pytest.raises(UserError, match="there is no 'Pong'; did you mean 'pong'"):
        make(1, game="Pong")


def test_render_gives_a_picture_only_when_asked() -> None:
    quiet = make(1, game="pong")
    drawing = build(Settings(factory="atari", game="pong"), 1, 0, render=True)
    drawing.reset(0)
    picture = drawing.render()
    assert quiet.render() is None
    assert picture is not None
    assert (picture.shape, picture.dtype) == ((336, 336, 3), np.uint8)
