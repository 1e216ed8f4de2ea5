from __future__ import annotations

import time

import numpy as np
import pytest

from envs.synthetic import Settings, build
from srlhpc.environment import ArraySpec, Continuous, Discrete, Environment, MultiDiscrete
from tests.environment_conformance import EnvironmentConformance


class TestSynthetic(EnvironmentConformance):
    settings = {"factory": "synthetic", "episode_steps": 7}
    offers_state = True


class TestSyntheticWithManyAgentsAndPictures(EnvironmentConformance):
    settings = {
        "factory": "synthetic",
        "agents": 3,
        "observation_shape": [4, 6],
        "observation_dtype": "uint8",
        "actions": {"kind": "multi_discrete", "choices": [2, 3]},
        "episode_steps": 5,
    }
    offers_state = True


class TestSyntheticWithContinuousActions(EnvironmentConformance):
    settings = {"factory": "synthetic", "actions": {"kind": "continuous", "size": 2}, "episode_steps": 1}
    offers_state = True


def made(num_environments: int = 1, **settings: object) -> Environment:
    return build(Settings.model_validate({"factory": "synthetic", **settings}), num_environments, 0)


def actions(environment: Environment) -> dict[str, np.ndarray]:
    kind = environment.spaces.kinds[0]
    shape = (environment.num_environments, len(kind.agents), *kind.actions.array.shape)
    return {"agent": np.zeros(shape, kind.actions.array.dtype)}


@pytest.mark.parametrize(
    ("given", "space"),
    [
        ({"kind": "discrete", "choices": 5}, Discrete(5)),
        ({"kind": "multi_discrete", "choices": [2, 3]}, MultiDiscrete((2, 3))),
        ({"kind": "continuous", "size": 2}, Continuous(2)),
    ],
)
def test_spaces_are_as_told(given: dict[str, object], space: object) -> None:
    (kind,) = made(actions=given, agents=2, observation_shape=[3], observation_dtype="uint8").spaces.kinds
    assert (kind.actions, kind.agents) == (space, ("agent_0", "agent_1"))
    assert kind.observations == {"obs": ArraySpec((3,), "uint8")}


def test_episode_has_the_steps_that_were_set_and_is_cut_off() -> None:
    environment = made(episode_steps=4, agents=2)
    environment.reset(0)
    ends = []
    for _ in range(10):
        step = environment.step(actions(environment))
        ends += [(episode.steps, dict(episode.returns)) for episode in step.episodes]
        assert not step.kinds["agent"].terminated.any()
    assert ends == [(4, {"agent_0": 4.0, "agent_1": 4.0})] * 2


def test_environments_do_not_end_together() -> None:
    environment = made(num_environments=4, episode_steps=8)
    environment.reset(0)
    ended = [[episode.environment for episode in environment.step(actions(environment)).episodes] for _ in range(8)]
    assert [together for together in ended if together] == [[3], [2], [1], [0]]


def test_a_step_computes_for_the_time_of_all_environments() -> None:
    environment = made(num_environments=2, step_seconds=0.01)
    environment.reset(0)
    begun = time.process_time()
    environment.step(actions(environment))
    assert time.process_time() - begun >= 0.02


def test_a_step_that_sleeps_takes_its_time_without_computing() -> None:
    environment = made(num_environments=2, step_seconds=0.02, work="sleep")
    environment.reset(0)
    wall, cpu = time.perf_counter(), time.process_time()
    environment.step(actions(environment))
    assert time.perf_counter() - wall >= 0.04
    assert time.process_time() - cpu < 0.04
