"""Gymnasium's MuJoCo tasks (HalfCheetah, Ant, Humanoid, ...): continuous actions, vector observations."""

from __future__ import annotations

from typing import Any, ClassVar

from envs import gymnasium as adapter
from envs._gymnasium_making import Recipe, Wrapper
from envs._mujoco_log import log_warnings
from srlhpc.environment import Environment
from srlhpc.specs.named_modules import EnvironmentSettings


class Settings(EnvironmentSettings):
    """A MuJoCo task."""

    requires: ClassVar[dict[str, str]] = {"mujoco": "mujoco"}

    task: str
    """Gymnasium id, for example `HalfCheetah-v5`."""
    kwargs: dict[str, Any] = {}
    """Further arguments of `gymnasium.make`, for example `{exclude_current_positions_from_observation: false}`."""
    wrappers: tuple[Wrapper, ...] = ()
    """Wrappers around each environment, as of the environment `gymnasium`."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment; raises UserError where the task is not known."""
    log_warnings()
    return adapter.from_recipe(
        Recipe(settings.task, settings.kwargs, settings.wrappers, render), num_environments, seed
    )
