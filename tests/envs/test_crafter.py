from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from envs._crafter_worlds import ACHIEVEMENTS, ACTIONS, simulator
from envs.crafter import Settings, build, score
from srlhpc.environment import Environment, Episode, KindStep
from tests.environment_conformance import EnvironmentConformance

crafter = pytest.importorskip("crafter")

SMALL = {"area": (16, 16), "pixels": 27}
"""A world is made in a hundredth of the time of a whole one."""


class TestSmallWorld(EnvironmentConformance):
    settings = {"factory": "crafter", "max_steps": 12, **SMALL}
    num_environments = 2
    steps = 30


def make(num_environments: int = 1, render: bool = False, **chosen: Any) -> Environment:
    return build(Settings(factory="crafter", **{**SMALL, **chosen}), num_environments, 0, render)


def play(environment: Environment, action: int) -> tuple[KindStep, list[Episode]]:
    step = environment.step({"agent": np.full((environment.num_environments, 1), action)})
    return step.kinds["agent"], list(step.episodes)


def test_records_are_those_of_the_package_stepped_by_hand() -> None:
    ours = make(max_steps=60)
    alone = simulator((16, 16), 27, 60)
    alone._seed = int(np.random.SeedSequence(3).generate_state(1)[0] >> 1)
    shown, random, unlocked, ends = alone.reset(), np.random.default_rng(0), {}, set()
    now = ours.reset(3).kinds["agent"]
    for _ in range(200):
        np.testing.assert_array_equal(now.observations["obs"][0, 0], shown.transpose(2, 0, 1))
        if not now.valid.item():
            shown = alone.reset()
            now = play(ours, 5)[0]
            assert now.first.item()
            continue
        choice = int(random.integers(ACTIONS))
        shown, reward, over, told = alone.step(choice)
        now, episodes = play(ours, choice)
        unlocked = {f"achievement_{name}": float(count > 0) for name, count in told["achievements"].items()}
        assert now.rewards.item() == np.float32(reward)
        assert (now.terminated.item(), now.truncated.item()) == (
            over and alone._player.health <= 0,
            over and alone._player.health > 0,
        )
        assert [episode.metrics for episode in episodes] == ([unlocked] if over else [])
        ends.add("limit" if now.truncated.item() else "death" if over else "")
    assert "limit" in ends
    assert any(unlocked)


def test_simulator_differs_from_the_package_only_in_the_order_of_creatures() -> None:
    ours, theirs = simulator((16, 16), 27, 60), crafter.Env(area=(16, 16), size=(27, 27), length=60, seed=0)
    np.testing.assert_array_equal(ours.reset(), theirs.reset())
    assert type(ours._world).__mro__[1] is type(theirs._world)
    for _ in range(9):  # The creatures are balanced at every tenth step.
        for mine, other in zip(ours.step(6), theirs.step(6), strict=True):
            np.testing.assert_equal(mine, other)
    assert {type(creatures) for creatures in theirs._world.chunks.values()} == {set}


def test_death_is_a_termination() -> None:
    environment = make()
    environment.reset(0)
    player = environment._worlds[0]._player  # type: ignore[attr-defined]
    player.health = 0
    now, episodes = play(environment, 0)
    assert (now.terminated.item(), now.truncated.item()) == (True, False)
    assert [episode.steps for episode in episodes] == [1]


def test_death_in_the_last_step_of_the_limit_is_a_termination() -> None:
    environment = make(max_steps=1)
    environment.reset(0)
    environment._worlds[0]._player.health = 0  # type: ignore[attr-defined]
    now, _ = play(environment, 0)
    assert (now.terminated.item(), now.truncated.item()) == (True, False)


def test_games_do_not_depend_on_where_objects_lie_in_memory() -> None:
    script = (
        "import hashlib, numpy as np; from envs.crafter import Settings, build; "
        "filler = [object() for _ in range({})]; "
        "world = build(Settings(factory='crafter', area=(24, 24), pixels=27), 1, 0); world.reset(1); "
        "shown = [world.step({{'agent': np.array([[t % 17]])}}).kinds['agent'].observations['obs'].tobytes() "
        "for t in range(100)]; print(hashlib.sha256(b''.join(shown)).hexdigest())"
    )
    commands = [[sys.executable, "-c", script.format(fillers)] for fillers in (1, 9_999)]
    seen = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in commands]
    assert seen[0] == seen[1] != ""


def test_achievements_and_actions_are_those_of_the_package() -> None:
    assert [*ACHIEVEMENTS] == sorted(crafter.constants.achievements)
    assert len(crafter.constants.actions) == ACTIONS


def test_whole_world_is_that_of_the_paper() -> None:
    kind = Settings(factory="crafter").spaces().kinds[0]
    theirs = crafter.Env()
    assert kind.observations["obs"].shape == (3, 64, 64)
    assert kind.actions.mask_size == theirs.action_space.n
    assert (theirs._area, theirs._length) == ((64, 64), 10_000)


def test_every_achievement_is_drawn_once() -> None:
    drawn = [name for panel in Settings(factory="crafter").statistics() for name in panel.statistics]
    assert sorted(drawn) == [f"achievement_{name}" for name in ACHIEVEMENTS]


def test_score_is_a_geometric_mean_of_percents() -> None:
    rates = dict.fromkeys([f"achievement_{name}" for name in ACHIEVEMENTS], 0.0)
    assert score(rates) == 0.0
    assert score(dict.fromkeys(rates, 1.0)) == pytest.approx(100)
    half = {name: float(place % 2) for place, name in enumerate(rates)}
    assert score(half) == pytest.approx(101**0.5 - 1)
    assert score({**half, "other": 0.3}) == score(half)
    with pytest.raises(KeyError, match="achievement_wake_up"):
        score({name: rate for name, rate in rates.items() if name != "achievement_wake_up"})


def test_render_gives_a_picture_only_when_asked_and_changes_nothing() -> None:
    quiet, drawing = make(), make(render=True)
    for environment in (quiet, drawing):
        environment.reset(0)
    for _ in range(5):
        picture = drawing.render()
        now, other = play(quiet, 6)[0], play(drawing, 6)[0]
        np.testing.assert_array_equal(now.observations["obs"], other.observations["obs"])
    assert quiet.render() is None
    assert picture is not None
    assert (picture.shape, picture.dtype) == ((216, 216, 3), np.uint8)
