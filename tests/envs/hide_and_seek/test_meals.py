from __future__ import annotations

import numpy as np
import pytest

from envs.hide_and_seek.meals import eat
from envs.hide_and_seek.walls import Wall
from tests.envs.hide_and_seek.scene import Scene, facing, settings_for

AHEAD = facing((0, 0), (1, 0))


def test_the_last_helpings_are_shared_evenly() -> None:
    eats = np.array([[[True, False], [True, True], [False, False]]])
    eaten = eat(eats, np.array([[1.0, 5.0]]))
    assert eaten.by_hider.tolist() == [[0.5, 1.5, 0.0]]
    assert eaten.health.tolist() == [[0.0, 4.0]]


def table(**food: object) -> Scene:
    """A hider that sees food nearby, another far away, and a seeker that sees nobody."""
    settings = settings_for(2, 1, 0, 0, food={"sites": 1, "health": 3, **food})
    scene = Scene(hiders=[(0.0, 0.0), (0.0, 50.0)], seekers=[(5.0, 0.0)], food=[(0.3, 0.0)], settings=settings)
    scene.put(0, angle=AHEAD)
    scene.put(2, angle=AHEAD)
    return scene


def test_a_hider_eats_what_it_sees_nearby_until_nothing_is_left() -> None:
    scene = table()
    rewards = []
    for _ in range(5):
        scene.step()
        rewards.append(scene.rewards)
    assert rewards == [[2, 1, -1]] * 3 + [[1, 1, -1]] * 2
    assert scene.seen("food_obs")[0, 0].tolist() == pytest.approx([0.3, 0.0, 0.05, 0.0])


def test_food_rewards_are_scaled_and_may_be_shared() -> None:
    scene = table(reward=4.0, shared=True)
    scene.step()
    assert scene.rewards == [3, 3, -1]


def test_an_empty_site_is_full_again_after_its_time() -> None:
    scene = table(health=1, respawn_steps=2)
    eaten = []
    for _ in range(8):
        scene.step()
        eaten.append(scene.rewards[0] - 1.0)
    assert eaten == [1, 0, 0, 1, 0, 0, 1, 0]


@pytest.mark.parametrize(("eat_when_seen", "reward"), [(False, -1.0), (True, 0.0)])
def test_hiders_that_are_seen_eat_only_where_that_is_allowed(eat_when_seen: bool, reward: float) -> None:
    scene = table(eat_when_seen=eat_when_seen)
    scene.put(2, angle=facing((5, 0), (0, 0)))
    scene.step()
    assert scene.rewards[0] == reward


def test_food_out_of_reach_or_out_of_sight_is_not_eaten() -> None:
    scene = table(radius=0.2)
    scene.step()
    assert scene.rewards[0] == 1.0
    scene = table()
    scene.put(0, angle=facing((0, 0), (-1, 0)))
    scene.step()
    assert scene.rewards[0] == 1.0


def test_food_is_not_seen_through_walls() -> None:
    settings = settings_for(1, 1, 0, 0, food={"sites": 1})
    for line, is_seen in ((4, False), (14, True)):
        scene = Scene(hiders=[(0.0, 0.0)], food=[(2.0, 0.0)], walls=[Wall(True, line, -9, 9)], settings=settings)
        scene.put(0, angle=AHEAD)
        assert scene.seen("mask_af_obs")[0, 0] == is_seen


def test_nothing_is_eaten_in_preparation() -> None:
    settings = settings_for(1, 1, 0, 0, food={"sites": 1}, scenario={"horizon": 10}, prep_fraction=0.4)
    scene = Scene(hiders=[(0.0, 0.0)], food=[(0.3, 0.0)], settings=settings)
    scene.put(0, angle=AHEAD)
    rewards = []
    for _ in range(6):
        scene.step()
        rewards.append(scene.rewards[0])
    assert rewards == [0, 0, 0, 0, 2, 2]
    while not (step := scene.step()).episodes:
        pass
    assert step.episodes[0].metrics["food_eaten"] == 6.0
