"""Gymnasium's MuJoCo tasks (HalfCheetah, Ant, Humanoid, ...): continuous actions, vector observations."""

from __future__ import annotations

import functools
import logging
from typing import Any, ClassVar

from envs import gymnasium as adapter
from srlhpc.environment import Environment
from srlhpc.specs.modules import EnvironmentSettings

logger = logging.getLogger(__name__)


class Settings(EnvironmentSettings):
    """A MuJoCo task."""

    requires: ClassVar[dict[str, str]] = {"mujoco": "mujoco"}

    task: str
    """Gymnasium id, for example `HalfCheetah-v5`."""
    kwargs: dict[str, Any] = {}
    """Further arguments of `gymnasium.make`, for example `{exclude_current_positions_from_observation: false}`."""


def build(settings: Settings, copies: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment; raises UserError where the task is not known."""
    import mujoco

    if mujoco.get_mju_user_warning() is None:
        # Without a handler MuJoCo writes MUJOCO_LOG.TXT into the working folder.
        mujoco.set_mju_user_warning(_log_once)
    return adapter.from_id(settings.task, settings.kwargs, copies, seed, render)


@functools.cache
def _log_once(message: str) -> None:
    logger.warning("MuJoCo: %s", message)
