"""Any `dm_env.Environment` by the import path of what makes it: one agent, E environments stepped one after the other.

Bounded integers of an action spec are choices, one for each of its numbers; floats are a continuous action.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from envs._dm_env_simulator import DmSimulator
from envs._dm_env_spaces import action_space, observation_space
from envs._gymnasium_environment import GymnasiumEnvironment, Understood, understood
from envs._gymnasium_simulators import Looped
from envs._returned_values import SimulatorError
from srlhpc.environment import Environment
from srlhpc.errors import UserError
from srlhpc.specs.named_modules import EnvironmentSettings

_REMEDY = "change the environment, or wrap it in one of yours"


class Settings(EnvironmentSettings):
    """A `dm_env.Environment`."""

    requires: ClassVar[dict[str, str]] = {"dm_env": "dm-env"}

    env: str
    """Function or class that makes an environment, as `module:function`, for example `my_lab.arena:Arena`."""
    kwargs: dict[str, Any] = {}
    """Arguments of that function."""
    seed_argument: str | None = "seed"
    """Name of that function's argument for the seed of an environment, for example `random_state`; null where nothing
    is random. A reset with another seed makes the environments anew."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment.

    Raises:
        UserError: there is no such environment, it does not take its arguments, or its specs are not understood.
    """
    make = _maker(settings)
    where = f"environment '{settings.env}'"

    def restart(old: Any, seed: int) -> Any:
        if old is not None:
            old.close()
        return make(seed)

    simulators = [DmSimulator(None, restart, render=render) for _ in range(num_environments)]
    seen = first_look(simulators[0], seed, where)
    looped = Looped(simulators, *seen)
    return GymnasiumEnvironment(looped, seen, num_environments, masked=seen.mask_in_observation)


def first_look(simulator: DmSimulator, seed: int, where: str) -> Understood:
    """How the simulator's specs are read and written, after a reset of it.

    Raises:
        UserError: they are not understood, or its first observation is not what they say.
    """
    try:
        raw, _ = simulator.reset(seed=seed)
    except SimulatorError as error:
        raise UserError(f"{where}: {error}") from None
    environment = simulator.environment
    shown, taken = observation_space(environment.observation_spec(), where), action_space(environment.action_spec())
    spaces = understood(shown, taken, where, _REMEDY, _REMEDY)
    spaces.observations.check(raw, where)
    return spaces


def _maker(settings: Settings) -> Callable[[int], Any]:
    """What makes an environment of a seed."""
    path, kwargs, name = settings.env, settings.kwargs, settings.seed_argument
    module_name, _, function = path.partition(":")
    try:
        make = getattr(importlib.import_module(module_name), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(
            f"environment.env: there is no '{path}' ({error}); name what makes a dm_env.Environment as module:function"
        ) from None
    try:
        inspect.signature(make).bind(**kwargs, **({} if name is None else {name: 0}))
    except TypeError as error:
        passed = "no seed is passed" if name is None else f"the seed is passed as '{name}'"
        raise UserError(f"environment.kwargs of '{path}': {error}; {passed} (environment.seed_argument)") from None
    return lambda seed: make(**kwargs, **({} if name is None else {name: seed}))
