"""Your own simulator that steps E copies of an environment at once, on numpy arrays: one class of three methods.

docs/vector.md shows one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import field_validator

from envs._gymnasium_environment import GymnasiumEnvironment, Understood, understood
from envs._gymnasium_simulators import Vectorised
from envs._own_vectors import NextStepVector, check_simulator, mapping
from envs._returned_values import SimulatorError, column
from srlhpc.environment import Array, Environment, Episode, SavedState, Step
from srlhpc.errors import UserError
from srlhpc.import_path import load_module
from srlhpc.specs.named_modules import EnvironmentSettings

_REMEDY = "give Box, Discrete, MultiDiscrete, MultiBinary, or Dicts and Tuples of them"
_OF_SIMULATOR = "simulator."


class Settings(EnvironmentSettings):
    """A simulator of copies."""

    simulator: str
    """Import path of the class: `my_lab.carts:Carts`."""
    kwargs: dict[str, Any] = {}
    """Further arguments of the class, behind `num_environments`."""

    @field_validator("simulator")
    @classmethod
    def _check_path(cls, path: str) -> str:
        if path.count(":") != 1:
            raise ValueError(f"'{path}' names no class; write module and class, for example my_lab.carts:Carts")
        return path


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    """Makes the environment.

    Raises:
        UserError: there is no such class, it lacks something, or its spaces are not understood.
    """
    where = f"environment.simulator: {settings.simulator}"
    module, _, name = settings.simulator.partition(":")
    try:
        found = load_module(module, "envs", (name,))
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    made = getattr(found, name)(num_environments, **settings.kwargs)
    check_simulator(made, where)
    if render and not hasattr(made, "render"):
        raise UserError(f"{where}: has no `render`, so it draws no pictures: give bytes (uint8) [height, width, 3]")
    spaces = understood(made.observation_space, made.action_space, where, _REMEDY, _REMEDY)
    vector = NextStepVector(made, num_environments)
    return VectorEnvironment(made, vector, spaces, num_environments)


class VectorEnvironment(GymnasiumEnvironment):
    """The simulator behind the contract."""

    def __init__(self, simulator: Any, vector: NextStepVector, spaces: Understood, num_environments: int) -> None:
        simulators = Vectorised(vector, num_environments, *spaces)
        super().__init__(simulators, spaces, num_environments, masked=spaces.mask_in_observation)
        self._simulator, self._vector = simulator, vector
        self._begun = False

    def reset(self, seed: int) -> Step:
        step = super().reset(seed)
        self._begun = True
        return step

    def step(self, actions: Mapping[str, Array]) -> Step:
        step = super().step(actions)
        if step.episodes and self._vector.metrics:
            columns = {
                name: column(values, self.num_environments, "biuf", f"metrics.{name}")
                for name, values in self._vector.metrics.items()
            }
            return Step(step.kinds, [_with_metrics(episode, columns) for episode in step.episodes])
        return step

    def save_state(self) -> SavedState | None:
        if not (hasattr(self._simulator, "save_state") and hasattr(self._simulator, "load_state")):
            return None
        if not self._begun:
            # Asked only to learn whether states are offered, before there is one.
            return {}
        saved = mapping(self._simulator.save_state(), "what save_state gives")
        state = {f"{_OF_SIMULATOR}{name}": np.array(value) for name, value in saved.items()}
        if wrong := [name for name, array in state.items() if array.dtype.hasobject]:
            name = wrong[0].removeprefix(_OF_SIMULATOR)
            raise SimulatorError(f"save_state gives '{name}', which is no array of numbers")
        return {**state, **self._records.save_state()}

    def load_state(self, state: SavedState) -> Step:
        own = {
            name.removeprefix(_OF_SIMULATOR): array for name, array in state.items() if name.startswith(_OF_SIMULATOR)
        }
        self._simulator.load_state(own)
        self._begun = True
        step = self._records.load_state(state)
        self._vector.continues(self._records.ended)
        return step


def _with_metrics(episode: Episode, columns: Mapping[str, Array]) -> Episode:
    return replace(episode, metrics={name: float(values[episode.environment]) for name, values in columns.items()})
