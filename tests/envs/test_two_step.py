from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from envs.two_step import Settings, build
from tests.environment_conformance import EnvironmentConformance


class TestTwoStep(EnvironmentConformance):
    settings: ClassVar = {"factory": "two_step"}
    num_environments = 8
    is_random = False
    offers_state = True


@pytest.mark.parametrize(
    ("first", "then", "payoff"),
    [(0, (0, 1), 7), (0, (1, 1), 7), (1, (0, 0), 0), (1, (0, 1), 1), (1, (1, 0), 1), (1, (1, 1), 8)],
)
def test_agent_0_chooses_the_matrix_and_both_the_payoff(first: int, then: tuple[int, int], payoff: int) -> None:
    environment = build(Settings(factory="two_step"), 1, 0)
    environment.reset(0)
    for other in (0, 1):
        middle = environment.step({"agent": np.array([[first, other]])}).kinds["agent"]
        assert middle.rewards.tolist() == [[0.0, 0.0]]
        assert middle.state is not None
        assert middle.state[0].tolist() == [0.0, 1.0 - first, float(first)]
        end = environment.step({"agent": np.array([then])})
        assert end.kinds["agent"].rewards.tolist() == [[payoff, payoff]]
        assert end.kinds["agent"].terminated.all()
        assert [episode.returns for episode in end.episodes] == [{"agent_0": payoff, "agent_1": payoff}]
        environment.step({"agent": np.array([[1, 1]])})


def test_agents_see_the_place_and_who_they_are() -> None:
    environment = build(Settings(factory="two_step"), 1, 0)
    shown = environment.reset(0).kinds["agent"].observations["obs"][0].tolist()
    assert shown == [[1.0, 0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 1.0]]
