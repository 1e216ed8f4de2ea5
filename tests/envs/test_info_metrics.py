"""Numbers that infos tell of episodes: single environments, vectors, and names that are not there."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from envs.gymnasium import Settings, build
from srlhpc.environment import Environment
from tests.envs.counting_environments import Counting

LIMIT = 3


class Telling(Counting):
    """Says in every info how far it is, and what it thinks of itself."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        look, reward, *_ = super().step(action)
        info = {"is_success": self.time == LIMIT, "episode": {"r": np.float32(10 * self.time)}, "name": "a"}
        return look, reward, self.time == LIMIT, False, info


def vector(num_envs: int) -> Any:
    return SyncVectorEnv([Telling] * num_envs, autoreset_mode=AutoresetMode.NEXT_STEP)


for name, vectors in {"srlhpc-tests/Telling-v0": None, "srlhpc-tests/TellingVector-v0": vector}.items():
    if name not in gymnasium.registry:
        gymnasium.register(name, entry_point=Telling, vector_entry_point=vectors)


def made(name: str, *metrics: str, **kwargs: Any) -> Environment:
    return build(Settings(factory="gymnasium", id=name, kwargs=kwargs, metrics=metrics), 2, 1)


def episodes(environment: Environment) -> list[dict[str, float]]:
    environment.reset(1)
    actions = {"agent": np.zeros((2, 1), np.int64)}
    return [dict(episode.metrics) for _ in range(2 * LIMIT + 1) for episode in environment.step(actions).episodes]


@pytest.mark.parametrize("name", ["srlhpc-tests/Telling-v0", "srlhpc-tests/TellingVector-v0"])
def test_named_numbers_of_the_last_info_are_those_of_the_episode(name: str) -> None:
    assert episodes(made(name, "is_success", "episode.r")) == [{"is_success": 1.0, "episode.r": 30.0}] * 4


@pytest.mark.parametrize("name", ["srlhpc-tests/Telling-v0", "srlhpc-tests/TellingVector-v0"])
def test_nothing_is_read_that_is_not_named(name: str) -> None:
    assert episodes(made(name)) == [{}] * 4


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("success", r"environment.metrics names 'success', which is not in the info .*; it has is_success, episode"),
        ("episode.l", "names 'episode.l', which is not in the info"),
        ("name", "'name' in the info is 'a'"),
    ],
)
def test_what_is_not_there_or_no_number_is_said(metric: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        episodes(made("srlhpc-tests/Telling-v0", metric))
