from __future__ import annotations

import numpy as np

from envs.recall import Settings, build
from srlhpc.environment import Environment, Step
from tests.environment_conformance import EnvironmentConformance


class TestRecall(EnvironmentConformance):
    settings = {"factory": "recall", "choices": 3, "delay": 2}
    num_environments = 8
    offers_state = True


def start(choices: int, delay: int, num_environments: int) -> tuple[Environment, Step, np.ndarray]:
    environment = build(Settings(factory="recall", choices=choices, delay=delay), num_environments, 0)
    step = environment.reset(0)
    return environment, step, step.kinds["agent"].observations["obs"][:, 0, :choices].argmax(axis=1)


def test_cue_then_blanks_then_query_are_shown() -> None:
    environment, step, cues = start(choices=2, delay=1, num_environments=1)
    shown = []
    for _ in range(4):
        shown.append(step.kinds["agent"].observations["obs"][0, 0].tolist())
        step = environment.step({"agent": np.zeros((1, 1), np.int64)})
    cue = [1.0, 0.0, 0.0] if cues[0] == 0 else [0.0, 1.0, 0.0]
    assert shown == [cue, [0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]


def test_only_the_answer_to_the_query_is_rewarded() -> None:
    environment, _, cues = start(choices=4, delay=2, num_environments=16)
    rewards = []
    for _ in range(4):
        rewards.append(environment.step({"agent": cues[:, None]}).kinds["agent"].rewards.copy())
    assert not np.any(rewards[:3])
    assert rewards[3].all()


def test_wrong_answer_brings_nothing() -> None:
    environment, _, cues = start(choices=4, delay=0, num_environments=16)
    wrong = {"agent": (cues[:, None] + 1) % 4}
    environment.step(wrong)
    step = environment.step(wrong)
    assert [episode.returns["agent"] for episode in step.episodes] == [0.0] * 16


def test_episode_has_the_delay_and_two_more_steps() -> None:
    environment, _, _ = start(choices=2, delay=3, num_environments=1)
    lengths = []
    while not lengths:
        lengths = [episode.steps for episode in environment.step({"agent": np.zeros((1, 1), np.int64)}).episodes]
    assert lengths == [5]


def test_every_cue_comes_up() -> None:
    _, _, cues = start(choices=4, delay=0, num_environments=200)
    assert set(cues.tolist()) == {0, 1, 2, 3}
