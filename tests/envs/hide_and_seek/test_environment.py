"""Episodes: preparation, ends, statistics, failures, seeds."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from envs.hide_and_seek import build
from envs.hide_and_seek.environment import HideAndSeek
from envs.hide_and_seek.game import Game
from envs.hide_and_seek.layout import draw_layout
from envs.hide_and_seek.pool import WorldPool
from envs.hide_and_seek.settings import Settings
from envs.hide_and_seek.walls import Wall
from srlhpc.environment import Environment, Step
from tests.envs.hide_and_seek.scene import FORWARD_X, IDLE, LOCK, Scene, facing, settings_for

TEAMS = {"hiders": [2, 2], "seekers": [2, 2]}


def made(kind: str, num_environments: int = 2, **changes: object) -> Environment:
    settings = {"factory": "hide_and_seek", "scenario": {"kind": kind}, **TEAMS, **changes}
    return build(Settings.model_validate(settings), num_environments, 0)


@pytest.mark.parametrize(("kind", "prep", "horizon"), [("quadrant", 32, 80), ("random_walls", 96, 240)])
def test_an_episode_is_prepared_played_and_truncated(kind: str, prep: int, horizon: int) -> None:
    environment = made(kind)
    environment.reset(1)
    starts = environment._game.bodies.positions[:, 2:4].copy()  # type: ignore[attr-defined]
    random = np.random.default_rng(0)
    for time in range(1, horizon + 1):
        actions = random.integers(0, (11, 11, 11, 2, 2), (2, 4, 5))
        actions[:, :2] = IDLE
        now = environment.step({"agent": actions}).kinds["agent"]
        if time <= prep:
            assert not now.rewards.any()
            assert np.abs(environment._game.bodies.positions[:, 2:4] - starts).max() < 0.05  # type: ignore[attr-defined]
        else:
            assert set(np.unique(now.rewards).tolist()) <= {-10.0, -1.0, 1.0}
            assert now.rewards.all()
        assert (now.truncated == (time == horizon)).all()
        assert not now.terminated.any()


def test_prep_is_observed() -> None:
    environment = made("random_walls")
    step = environment.reset(1)
    seen = [step.kinds["agent"].observations["observation_self"][0, 0, 9]]
    for _ in range(97):
        step = environment.step({"agent": np.tile(IDLE, (2, 4, 1))})
        seen.append(step.kinds["agent"].observations["observation_self"][0, 0, 9])
    assert seen[0] == 0.0
    assert seen[48] == pytest.approx(0.5)
    assert seen[96] < 1.0
    assert seen[97] == 1.0


def test_the_step_in_which_preparation_ends_keeps_its_penalty_away() -> None:
    settings = settings_for(1, 1, 0, 0, prep_fraction=0.5, scenario={"horizon": 4, "restrict": [-1, -1, 1, 1]})
    scene = Scene(hiders=[(9.0, 9.0)], settings=settings)
    rewards = []
    for _ in range(4):
        scene.step()
        rewards.append(scene.rewards[0])
    assert rewards == [0, 0, -10, -10]


def test_actions_that_are_overridden_are_not_masked() -> None:
    """What a frozen seeker or a blind puller chose is what it is trained on."""
    environment = made("quadrant")
    assert not environment.spaces.kinds[0].has_action_masks
    now = environment.reset(0).kinds["agent"]
    assert now.action_masks is None
    assert now.valid.all()


def test_seekers_can_do_nothing_in_preparation() -> None:
    settings = settings_for(1, 1, 1, 0, prep_fraction=0.5, scenario={"horizon": 8})
    scene = Scene(seekers=[(0.0, 0.0)], boxes=[(0.45, 0.0)], settings=settings)
    scene.put(1, angle=facing((0, 0), (1, 0)))
    everything = (5, 10, 10, 0, 1)
    scene.step(IDLE, everything, times=4)
    assert np.abs(scene.at(1)[:2]).max() < 0.01
    assert not scene.game.locks.locked.any()
    scene.step(IDLE, everything)
    assert scene.game.locks.locked.any()
    assert scene.at(1)[1] > 0.05


def finished(scene: Scene, *actions: tuple[int, ...]) -> dict[str, float]:
    while not (step := scene.step(*actions)).episodes:
        pass
    return dict(step.episodes[0].metrics)


def test_statistics_tell_movement_and_locks_in_preparation_from_those_at_the_end() -> None:
    settings = settings_for(1, 1, 2, 1, prep_fraction=0.5, scenario={"horizon": 20})
    scene = Scene(hiders=[(0.0, 0.0)], boxes=[(0.45, 0.0), (9.0, 9.0)], ramps=[(5.0, 0.0)], settings=settings)
    scene.put(0, angle=facing((0, 0), (1, 0)))
    scene.step(LOCK, times=11)
    metrics = finished(scene, FORWARD_X)
    assert metrics["num_box_lock_prep"] == 1.0
    assert metrics["num_box_lock"] == 0.0
    assert metrics["max_box_move_prep"] < 0.01
    assert metrics["max_box_move"] == pytest.approx(scene.at(2)[0] - 0.45, rel=1e-6)
    assert metrics["max_box_move"] > 1.0
    assert metrics["max_ramp_move"] < 0.01
    assert metrics["num_ramp_lock"] == 0.0


def test_ramps_are_counted_apart_from_boxes() -> None:
    settings = settings_for(1, 1, 1, 1, prep_fraction=0.5, scenario={"horizon": 4})
    scene = Scene(hiders=[(0.0, 0.0)], boxes=[(9.0, 9.0)], ramps=[(0.45, 0.0)], settings=settings)
    scene.put(0, angle=facing((0, 0), (1, 0)))
    metrics = finished(scene, LOCK)
    assert (metrics["num_ramp_lock_prep"], metrics["num_box_lock_prep"], metrics["num_ramp_lock"]) == (1.0, 0.0, 1.0)


def test_preparation_statistics_are_taken_one_step_after_its_end() -> None:
    settings = settings_for(1, 1, 1, 0, prep_fraction=0.5, scenario={"horizon": 6})
    for presses, locked in ((3, 0.0), (4, 1.0)):
        scene = Scene(hiders=[(0.0, 0.0)], boxes=[(0.45, 0.0)], settings=settings)
        scene.put(0, angle=facing((0, 0), (1, 0)))
        scene.step(LOCK, times=presses)
        assert finished(scene)["num_box_lock_prep"] == locked


def test_stages_are_drawn_from_statistics_that_episodes_have() -> None:
    scenario = {"kind": "random_walls", "horizon": 4}
    settings = Settings.model_validate({"factory": "hide_and_seek", "scenario": scenario, "food": {"sites": 1}})
    environment = build(settings, num_environments=1, seed=0)
    idle = {"agent": np.zeros((1, len(settings.agents), 5), np.int64)}
    while not (step := environment.step(idle)).episodes:
        pass
    drawn = [name for panel in settings.statistics() for name in panel.statistics]
    assert sorted(drawn) == sorted(step.episodes[0].metrics)


def test_returns_are_those_of_the_first_hider_and_the_last_seeker_in_the_game() -> None:
    environment = made("quadrant", num_environments=6, hiders=[1, 2], seekers=[1, 2], reward="selfish")
    step = environment.reset(2)
    random = np.random.default_rng(0)
    while not step.episodes:
        step = environment.step({"agent": random.integers(0, (11, 11, 11, 2, 2), (6, 4, 5))})
    alive = step.kinds["agent"].alive
    assert len(step.episodes) == 6
    assert len({row.tobytes() for row in alive}) > 1
    for episode in step.episodes:
        last = "seeker_1" if alive[episode.environment, 3] else "seeker_0"
        assert episode.metrics["hider_return"] == episode.returns["hider_0"]
        assert episode.metrics["seeker_return"] == episode.returns[last] != 0.0


def test_a_diverged_simulation_is_cut_off_and_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(hiders=[(1.0, 1.0)], boxes=[(3.0, 3.0)])
    before = scene.at(0)
    scene.game.worlds[0].velocities[0, 0] = np.nan
    with caplog.at_level(logging.WARNING):
        step = scene.step()
    assert "diverged" in caplog.text
    assert scene.agent.truncated.all()
    assert not scene.agent.valid.any()
    assert scene.rewards == [0.0, 0.0]
    assert [episode.steps for episode in step.episodes] == [1]
    assert all(np.isfinite(array).all() for array in scene.agent.observations.values())
    np.testing.assert_allclose(scene.at(0), before)
    scene.step()
    assert scene.agent.first.all()
    assert np.isfinite(scene.game.bodies.velocities).all()
    scene.step()
    assert scene.agent.valid.all()


def boxes_of(step: Step) -> np.ndarray:
    return step.kinds["agent"].observations["box_obs"][:, 0, :, :2].copy()


def restarted(environment: Environment, idle: bool) -> np.ndarray:
    """Where the boxes of the second episode are."""
    random = np.random.default_rng(0)
    for _ in range(81):
        actions = np.tile(IDLE, (2, 4, 1)) if idle else random.integers(0, (11, 11, 11, 2, 2), (2, 4, 5))
        step = environment.step({"agent": actions})
    assert step.kinds["agent"].first.all()
    return boxes_of(step)


def test_deterministic_worlds_follow_from_the_seed_and_the_episode_alone() -> None:
    environment = made("quadrant", deterministic=True)
    first = boxes_of(environment.reset(4))
    second = restarted(environment, idle=True)
    assert (first != second).any()
    environment.reset(4)
    np.testing.assert_array_equal(restarted(environment, idle=False), second)


def test_team_sizes_stay_in_an_environment_unless_drawn_for_every_episode() -> None:
    for when, stays in (("per_environment", True), ("per_episode", False)):
        environment = made("quadrant", num_environments=8, hiders=[1, 3], seekers=[1, 3], team_sizes=when)
        before = environment.reset(0).kinds["agent"].alive.copy()
        for _ in range(81):
            step = environment.step({"agent": np.tile(IDLE, (8, 6, 1))})
        assert (step.kinds["agent"].alive == before).all() == stays


def test_worlds_of_the_quadrant_are_compiled_once_whatever_the_teams() -> None:
    pool, random = WorldPool(), np.random.default_rng(0)
    settings = Settings.model_validate({"factory": "hide_and_seek", "scenario": {"kind": "quadrant"}})
    game = Game(settings, 2, pool)
    for _ in range(5):
        for env, teams in enumerate(((1, 3), (2, 2))):
            game.start(env, draw_layout(settings, *teams, random))
    assert pool.compiled == 2
    game.close()
    assert game.worlds == []


def test_a_saved_state_keeps_what_is_held_and_locked_bit_for_bit() -> None:
    pull_and_lock, pull = (10, 5, 5, 1, 1), (0, 4, 6, 1, 0)
    settings = settings_for(2, 1, 3, 1)
    scene = Scene(
        hiders=[(0.0, 0.0), (0.0, 3.0)],
        boxes=[(0.45, 0.0), (0.45, 3.0), (5.0, 5.0)],
        ramps=[(-3.0, 0.0)],
        walls=[Wall(True, -20, 0, 20)],
        settings=settings,
    )
    for hider in (0, 1):
        scene.put(hider, angle=facing((0, 0), (1, 0)))
    scene.step((5, 5, 5, 1, 0), (5, 5, 5, 1, 1))
    scene.step(pull, pull_and_lock, times=3)
    assert scene.game.grabs.held[0, 0] == 0
    assert scene.game.locks.locked[0, 1]
    other = HideAndSeek(settings, 1, 5, render=False)
    other.load_state({key: np.array(value) for key, value in (scene.environment.save_state() or {}).items()})
    actions = np.array([[pull, pull_and_lock, IDLE]])
    for _ in range(10):
        mine, its = scene.environment.step({"agent": actions}), other.step({"agent": actions})
        for key, array in mine.kinds["agent"].observations.items():
            np.testing.assert_array_equal(array, its.kinds["agent"].observations[key], err_msg=key)
    assert scene.game.grabs.held[0, 0] == 0
    assert scene.game.locks.locked[0, 1]
    assert scene.at(3)[0] < 0.4


def test_a_state_can_be_saved_before_the_first_reset() -> None:
    environment, other = made("quadrant"), made("quadrant")
    now = other.load_state(environment.save_state() or {}).kinds["agent"]
    assert now.first.all()
    assert now.valid.all()
