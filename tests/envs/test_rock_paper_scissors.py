from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from envs.rock_paper_scissors import Settings, build
from srlhpc.doctor.random_play import Seen
from srlhpc.environment import Episode
from tests.environment_conformance import EnvironmentConformance


class TestRockPaperScissors(EnvironmentConformance):
    settings: ClassVar = {"factory": "rock_paper_scissors"}
    num_environments = 8
    is_random = False
    offers_state = True

    def test_environments_differ(self, played: list[Seen]) -> None:
        """They all look alike, so what they bring is compared."""
        rewards = [step.kinds["agent"].rewards for step in played]
        assert any((array != array[:1]).any() for array in rewards)


def last_of(one: int, other: int, **settings: float) -> Episode:
    environment = build(Settings(factory="rock_paper_scissors", **settings), 2, 0)
    environment.reset(0)
    environment.step({"agent": np.zeros((2, 2), np.int64)})
    environment.step({"agent": np.full((2, 2), 2)})
    step = environment.step({"agent": np.array([[one, other], [0, 0]])})
    now = step.kinds["agent"]
    assert now.terminated.all()
    assert not now.valid.any()
    assert now.rewards[0].tolist() == list(step.episodes[0].returns.values())
    assert [episode.environment for episode in step.episodes] == [0, 1]
    return step.episodes[0]


@pytest.mark.parametrize(
    ("one", "other", "payoff"),
    [(0, 0, 0), (1, 1, 0), (2, 2, 0), (1, 0, 1), (2, 1, 1), (0, 2, 1), (0, 1, -1), (1, 2, -1), (2, 0, -1)],
)
def test_each_choice_beats_one_and_loses_to_the_other(one: int, other: int, payoff: int) -> None:
    assert last_of(one, other).returns == {"agent_0": payoff, "agent_1": -payoff}


def test_rock_may_win_more_than_others() -> None:
    assert last_of(2, 0, rock_wins=2.0).returns == {"agent_0": -2.0, "agent_1": 2.0}
    assert last_of(1, 0, rock_wins=2.0).returns == {"agent_0": 1.0, "agent_1": -1.0}


def test_choices_of_both_are_metrics() -> None:
    assert last_of(2, 0).metrics == {"rock": 0.5, "paper": 0.0, "scissors": 0.5}
    assert last_of(1, 1).metrics == {"rock": 0.0, "paper": 1.0, "scissors": 0.0}
