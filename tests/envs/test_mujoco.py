from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from envs.mujoco import Settings, build
from srlhpc.environment import Continuous
from srlhpc.errors import UserError
from tests.environment_conformance import EnvironmentConformance

pytest.importorskip("mujoco")


class TestHopper(EnvironmentConformance):
    settings = {"factory": "mujoco", "task": "Hopper-v5"}


class TestHalfCheetah(EnvironmentConformance):
    settings = {"factory": "mujoco", "task": "HalfCheetah-v5", "kwargs": {"max_episode_steps": 30}}


def test_actions_are_scaled_to_the_tasks_bounds() -> None:
    environment, twin = build(Settings(factory="mujoco", task="Humanoid-v5"), 1, 0), gymnasium.make("Humanoid-v5")
    assert environment.spaces.kinds[0].actions == Continuous(17)
    environment.reset(1)
    twin.reset(seed=int(np.random.SeedSequence(1).generate_state(1)[0]))
    step = environment.step({"agent": np.full((1, 1, 17), 0.5, np.float32)})
    expected, *_ = twin.step(np.full(17, 0.2, np.float32))
    np.testing.assert_allclose(step.kinds["agent"].observations["obs"][0, 0], expected, rtol=1e-5, atol=1e-5)


def test_unknown_task_names_near_ones() -> None:
    with pytest.raises(UserError, match="did you mean 'HalfCheetah-v5'"):
        build(Settings(factory="mujoco", task="HalfCheeta-v5"), 1, 0)


def test_no_log_file_is_written_into_the_working_folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(folder)
    build(Settings(factory="mujoco", task="HalfCheetah-v5"), 1, 0)
    assert list(folder.iterdir()) == []
