"""Tasks of DeepMind's Control Suite: continuous actions, vector observations, rewards from 0 to 1.

Every episode has 1,000 steps and is cut then (truncated), but for a few tasks that also end by themselves.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from envs._dm_control_state import SuiteState
from envs._dm_env_simulator import DmSimulator
from envs._gymnasium_environment import GymnasiumEnvironment, Understood
from envs._gymnasium_simulators import Looped
from envs._mujoco_log import log_warnings
from envs.dm_env import first_look
from srlhpc.environment import Environment, SavedState, Step
from srlhpc.errors import UserError, did_you_mean
from srlhpc.specs.named_modules import EnvironmentSettings


class Settings(EnvironmentSettings):
    """A task of the Control Suite."""

    requires: ClassVar[dict[str, str]] = {"dm_control": "dm-control"}

    domain: str
    """Name of the domain, for example `cheetah`."""
    task: str
    """Name of one of its tasks, for example `run`."""
    task_kwargs: dict[str, Any] = {}
    """Arguments of the task, for example `{time_limit: 5}` in seconds of the simulation. `random` is 0 unless it is
    given; it makes the models of `lqr`, while starts and targets follow from the job's seed."""
    environment_kwargs: dict[str, Any] = {}
    """Arguments of `dm_control.rl.control.Environment`, for example `{control_timestep: 0.02}` in seconds, or
    `{flat_observation: true}`."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment.

    Raises:
        UserError: there is no such task, it does not take its arguments, or it draws and cannot.
    """
    suite = _suite(render)
    log_warnings()
    where = f"environment '{settings.domain}/{settings.task}'"
    _check_task(settings, suite.TASKS_BY_DOMAIN)
    task_kwargs = {"random": 0, **settings.task_kwargs}
    try:
        environments = [
            suite.load(settings.domain, settings.task, task_kwargs, settings.environment_kwargs)
            for _ in range(num_environments)
        ]
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: its task_kwargs or environment_kwargs do not fit: {error}") from None
    state = SuiteState(environments)
    simulators = [DmSimulator(environment, _seeded, render=render) for environment in environments]
    try:
        seen = first_look(simulators[0], seed, where)
    except RuntimeError as error:
        if "OpenGL" not in str(error):
            raise
        raise UserError(
            f"{where} prepares pictures as it starts, which fails: {error} On a machine without a screen set "
            "MUJOCO_GL=egl or osmesa in the shell's environment"
        ) from None
    return DmControl(simulators, seen, state)


def _suite(render: bool) -> Any:
    """The package. Where nothing is drawn, it does not look for a screen, about which it would warn.

    Raises:
        UserError: pictures are wanted, and there is nothing to draw them with.
    """
    if render and not any(name in os.environ for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY")):
        raise UserError(
            "--video: dm_control draws on a screen, and there is none here; set MUJOCO_GL=egl or osmesa in the shell's "
            "environment"
        )
    if render or "MUJOCO_GL" in os.environ or "dm_control" in sys.modules:
        return importlib.import_module("dm_control.suite")
    os.environ["MUJOCO_GL"] = "disable"
    try:
        return importlib.import_module("dm_control.suite")
    finally:
        del os.environ["MUJOCO_GL"]


def _check_task(settings: Settings, tasks: Mapping[str, Sequence[str]]) -> None:
    if settings.domain not in tasks:
        raise UserError(
            f"environment.domain: there is no '{settings.domain}'{did_you_mean(settings.domain, list(tasks))}"
        )
    known = list(tasks[settings.domain])
    if settings.task not in known:
        raise UserError(
            f"environment.task: {settings.domain} has no '{settings.task}'{did_you_mean(settings.task, known)}"
        )


def _seeded(environment: Any, seed: int) -> Any:
    environment.task.random.seed(seed)
    return environment


class DmControl(GymnasiumEnvironment):
    """E environments of one task, saved exactly."""

    def __init__(self, simulators: Sequence[DmSimulator], spaces: Understood, state: SuiteState) -> None:
        super().__init__(Looped(simulators, *spaces), spaces, len(simulators), masked=False)
        self._state = state

    def save_state(self) -> SavedState:
        return {**self._records.save_state(), **self._state.save()}

    def load_state(self, state: SavedState) -> Step:
        self._state.load(state)
        return self._records.load_state(state)
