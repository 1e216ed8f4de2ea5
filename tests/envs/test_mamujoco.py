"""Multi-agent MuJoCo, beside the package's own environments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import ValidationError

from envs._bare_modules import load_bare
from envs._mamujoco_bodies import Body
from envs.mamujoco import Settings, build
from srlhpc.environment import Continuous, Environment
from srlhpc.errors import UserError
from srlhpc.import_path import missing_packages
from tests.environment_conformance import EnvironmentConformance

pytestmark = pytest.mark.skipif(bool(missing_packages(Settings.requires)), reason="needs gymnasium-robotics")


class TestHalfCheetah(EnvironmentConformance):
    settings: ClassVar = {
        "factory": "mamujoco",
        "scenario": "HalfCheetah",
        "agent_conf": "6x1",
        "kwargs": {"max_episode_steps": 30},
        "state": True,
    }


class TestHumanoid(EnvironmentConformance):
    """Agents of unequal kinds, that fall."""

    settings: ClassVar = {"factory": "mamujoco", "scenario": "Humanoid", "agent_conf": "9|8"}
    num_environments = 2


def made(number: int = 1, render: bool = False, **chosen: Any) -> Environment:
    return build(Settings.model_validate({"factory": "mamujoco", **chosen}), number, 0, render)


@pytest.mark.parametrize(
    ("scenario", "agent_conf", "kinds"),
    [
        ("HalfCheetah", "6x1", {"agent": (6, 9 + 6, 1)}),
        ("Humanoid", "9|8", {"agent": (1, 242, 9), "agent_2": (1, 170, 8)}),
        ("Ant", "4x2", {"agent": (4, 42 + 4, 2)}),
    ],
)
def test_a_robot_goes_as_the_package_alone_plays_it(
    scenario: str, agent_conf: str, kinds: dict[str, tuple[int, int, int]]
) -> None:
    limit, random = 12, np.random.default_rng(0)
    chosen = {"scenario": scenario, "agent_conf": agent_conf, "kwargs": {"max_episode_steps": limit}}
    ours = made(state=True, **chosen)
    found = {kind.name: (len(kind.agents), *kind.observations["obs"].shape) for kind in ours.spaces.kinds}
    assert found == {name: (agents, seen) for name, (agents, seen, _) in kinds.items()}
    module = load_bare("gymnasium_robotics.envs.multiagent_mujoco.mujoco_multi")
    alone = module.MultiAgentMujocoEnv(scenario, agent_conf, 1, max_episode_steps=limit)
    seen, _ = alone.reset(seed=int(np.random.SeedSequence(5).generate_state(1)[0]))
    step = ours.reset(5)
    reward, cut = 0.0, False
    for number in range(limit + 1):
        for kind in ours.spaces.kinds:
            now = step.kinds[kind.name]
            assert kind.actions == Continuous(kinds[kind.name][2])
            for place, agent in enumerate(kind.agents):
                shown, others = now.observations["obs"][0, place], len(kind.agents) if len(kind.agents) > 1 else 0
                np.testing.assert_array_equal(shown[: len(seen[agent])], np.float32(seen[agent]))
                behind = shown[len(seen[agent]) :]
                assert np.flatnonzero(behind).tolist() == ([len(behind) - others + place] if others else [])
            assert now.state is not None
            np.testing.assert_array_equal(now.state[0], np.float32(alone.state()))
            np.testing.assert_array_equal(now.rewards, np.float32(reward))
            assert now.truncated.all() == now.truncated.any() == cut
        if number == limit:
            break
        actions = {
            name: random.uniform(-1, 1, (1, agents, joints)).astype(np.float32)
            for name, (agents, _, joints) in kinds.items()
        }
        high = {agent: alone.action_space(agent).high[0] for agent in alone.possible_agents}
        taken = {
            agent: actions[kind.name][0, place] * high[agent]
            for kind in ours.spaces.kinds
            for place, agent in enumerate(kind.agents)
        }
        seen, rewards, _, cuts, _ = alone.step(taken)
        reward, cut = rewards["agent_0"], cuts["agent_0"]
        step = ours.step(actions)
    assert cut
    assert len(set(step.episodes[0].returns.values())) == 1


def test_agents_that_see_fewer_values_have_zeros_behind_them_and_all_know_who_they_are() -> None:
    environment = made(scenario="HalfCheetah", agent_conf="6x1")
    shown = environment.reset(0).kinds["agent"].observations["obs"][0]
    assert (shown[:, 8] == 0).tolist() == [False, False, True, False, False, True]
    np.testing.assert_array_equal(shown[:, 9:], np.eye(6))


def test_order_of_what_is_seen_does_not_hang_on_memory() -> None:
    module = load_bare("gymnasium_robotics.envs.multiagent_mujoco.mujoco_multi")
    seen = []
    for step in (1, -1):
        simulator = module.MultiAgentMujocoEnv("Pusher", "3p", 1)
        for near in simulator.k_dicts:
            near.update({distance: joints[::step] for distance, joints in near.items()})
        seen.append(Body(simulator).reset(seed=0)[0])
    np.testing.assert_equal(seen[0], seen[1])


def test_nothing_is_printed_and_no_module_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made(scenario="Humanoid", agent_conf="9|8").reset(0)
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())
    assert not [name for name in sys.modules if name.startswith("gymnasium_robotics")]


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ({"agent_conf": "2x9"}, "environment.agent_conf: 'Hopper' cannot be shared out as '2x9'; https://robotics"),
        ({"agent_conf": "3x1", "kwargs": {"gravity": 1}}, "environment.kwargs of 'Hopper': "),
    ],
)
def test_robots_that_cannot_be_made_are_refused(chosen: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError) as caught:
        made(scenario="Hopper", **chosen)
    assert text in str(caught.value)


def test_unknown_scenario_names_those_there_are() -> None:
    with pytest.raises(ValidationError, match="'HalfCheetah'"):
        Settings.model_validate({"factory": "mamujoco", "scenario": "Cheetah", "agent_conf": "6x1"})
