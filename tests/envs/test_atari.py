from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from envs.atari import Atari, Settings, build
from srlhpc.doctor.random_play import Seen, keep, random_actions
from srlhpc.environment import Environment
from srlhpc.errors import UserError
from tests.environment_conformance import EnvironmentConformance

pytest.importorskip("ale_py")


class TestPong(EnvironmentConformance):
    settings = {"factory": "atari", "game": "pong", "max_frames": 100, "sticky_actions": 0.25}
    num_environments = 2
    steps = 60


class TestBreakoutLives(EnvironmentConformance):
    settings = {"factory": "atari", "game": "breakout", "life_loss_terminates": True}
    num_environments = 2
    steps = 60
    # Games are reported, not lives.
    test_episodes_are_reported_once_with_their_steps_and_returns = None


def make(num_environments: int = 4, **settings: Any) -> Environment:
    return build(Settings(factory="atari", **settings), num_environments, 0)


def play(environment: Environment, steps: int) -> list[Seen]:
    random, seen = np.random.default_rng(0), [keep(environment.reset(3))]
    for _ in range(steps):
        seen.append(keep(environment.step(random_actions(environment.spaces, seen[-1], random))))
    return seen


def test_frame_limit_truncates() -> None:
    last = play(make(1, game="pong", max_frames=80, noop_max=0), 20)[-1].kinds["agent"]
    assert (last.truncated.item(), last.terminated.item()) == (True, False)


def test_learner_sees_clipped_rewards_but_returns_are_true_scores() -> None:
    seen = play(make(2, game="ms_pacman", max_frames=800), 220)
    rewards = np.array([step.kinds["agent"].rewards for step in seen])
    scores = [episode.returns["agent"] for step in seen for episode in step.episodes]
    assert set(np.unique(rewards)) == {0.0, 1.0}
    assert scores
    assert all(score >= 10 and score % 10 == 0 for score in scores)


def test_rewards_are_scores_when_clipping_is_off() -> None:
    seen = play(make(1, game="ms_pacman", reward_clip=None), 150)
    assert max(step.kinds["agent"].rewards.max() for step in seen) >= 10


def test_lost_life_ends_the_learners_episode_but_not_the_game() -> None:
    seen = play(make(2, game="breakout", life_loss_terminates=True), 200)
    ends = sum(int(step.kinds["agent"].terminated.sum()) for step in seen)
    games = sum(len(step.episodes) for step in seen)
    assert games
    # A game has 5 lives; in each environment one game is still under way.
    assert 5 * games <= ends <= 5 * (games + 2)


class LifeScript:
    """One game of ALE's vector whose lives, scores and ends come from a table; notes what it is told."""

    def __init__(self, *, lives: Sequence[int], scores: Sequence[int], over: Sequence[bool]) -> None:
        self.ale = SimpleNamespace(get_action_set=lambda: [SimpleNamespace(name=n) for n in ("NOOP", "FIRE", "UP")])
        self.told: list[int | str] = []
        self._rows = iter(zip(lives, scores, over, strict=True))

    def _observation(self, lives: int) -> np.ndarray:
        return np.full((1, 4, 84, 84), lives, np.uint8)

    def reset(self, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        self.told.append("reset" if options is None else f"reset {options['reset_mask'].tolist()}")
        return self._observation(3), {"lives": np.array([3], np.int32)}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, ...]:
        self.told.append(int(actions[0]))
        lives, score, over = next(self._rows)
        flags = np.array([over]), np.array([False])
        return self._observation(lives), np.array([score], np.int32), *flags, {"lives": np.array([lives], np.int32)}


def play_lives(script: LifeScript, steps: int, *, life_loss_terminates: bool = True) -> list[Seen]:
    settings = Settings(factory="atari", game="any", life_loss_terminates=life_loss_terminates)
    environment = Atari(script, settings, 1, False)
    seen = [keep(environment.reset(0))]
    return seen + [keep(environment.step({"agent": np.full((1, 1), 2)})) for _ in range(steps)]


def row(seen: Sequence[Seen], name: str) -> list[float]:
    return [float(getattr(step.kinds["agent"], name)[0, 0]) for step in seen]


def test_record_after_a_lost_life_fires_and_its_score_counts_in_the_game_only() -> None:
    script = LifeScript(lives=[3, 2, 2, 2, 0], scores=[5, 5, 5, 5, 5], over=[False, False, False, False, True])
    seen = play_lives(script, 5)
    assert script.told == ["reset", 2, 2, 1, 2, 2]
    assert row(seen, "valid") == [1, 1, 0, 1, 1, 0]
    assert row(seen, "rewards") == [0, 1, 1, 0, 1, 1]
    assert [dict(episode.returns) for episode in seen[-1].episodes] == [{"agent": 25.0}]
    assert seen[-1].episodes[0].steps == 4


def test_game_that_ends_in_the_record_after_a_lost_life_is_restarted_at_once() -> None:
    script = LifeScript(lives=[2, 0, 3], scores=[0, 0, 0], over=[False, True, False])
    seen = play_lives(script, 3)
    assert script.told == ["reset", 2, 1, "reset [True]", 2]
    assert row(seen, "valid") == [1, 0, 1, 1]
    assert row(seen, "first") == [1, 0, 1, 0]
    assert row(seen, "terminated") == [0, 1, 0, 0]
    assert seen[2].kinds["agent"].observations["obs"][0, 0, 0, 0, 0] == 3
    assert [len(step.episodes) for step in seen] == [0, 0, 1, 0]
    assert row(seen, "stacks_begin") == [1, 0, 1, 0]


def test_stacks_go_on_over_a_lost_life_and_begin_anew_with_a_game() -> None:
    script = LifeScript(lives=[3, 2, 2, 2, 0, 3], scores=[0] * 6, over=[False, False, False, False, True, False])
    seen = play_lives(script, 6)
    assert row(seen, "first") == [1, 0, 0, 1, 0, 0, 1]
    assert row(seen, "stacks_begin") == [1, 0, 0, 0, 0, 0, 1]


def test_no_lives_left_for_a_moment_is_no_lost_life() -> None:
    seen = play_lives(LifeScript(lives=[0, 3, 0], scores=[0, 0, 0], over=[False, False, True]), 3)
    assert row(seen, "terminated") == [0, 0, 0, 1]


def test_lost_life_is_nothing_special_unless_asked_for() -> None:
    script = LifeScript(lives=[2, 1, 0], scores=[0, 0, 0], over=[False, False, True])
    assert row(play_lives(script, 3, life_loss_terminates=False), "terminated") == [0, 0, 0, 1]


def test_sticky_actions_change_the_game() -> None:
    plain, sticky = (play(make(1, game="breakout", sticky_actions=p), 40)[-1] for p in (0.0, 0.9))
    assert (plain.kinds["agent"].observations["obs"] != sticky.kinds["agent"].observations["obs"]).any()


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
