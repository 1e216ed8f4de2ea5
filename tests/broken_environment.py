"""An environment that raises an exception after so many steps, in the first actor only."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import PositiveInt

from srlhpc.environment import Array, Environment, Spaces, Step
from srlhpc.plan.seeds import seed_of
from srlhpc.specs.named_modules import EnvironmentSettings
from tests.scripted import Script, Scripted, scripted_spaces


class Settings(EnvironmentSettings):
    """When it fails."""

    fails_at: PositiveInt
    """The step that raises."""

    def spaces(self) -> Spaces:
        return scripted_spaces({"agent": ("agent",)})


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    # The seed that the spec's seed 3 gives to the first group of the first actor.
    return Broken(num_environments, settings.fails_at if seed == seed_of(3, "environment", 0, 0, 0) else None)


class Broken(Scripted):
    def __init__(self, num_environments: int, fails_at: int | None) -> None:
        super().__init__([[Script(5)]] * num_environments)
        self._fails_at = fails_at
        self._steps = 0

    def step(self, actions: Mapping[str, Array]) -> Step:
        self._steps += 1
        if self._steps == self._fails_at:
            raise ValueError("the world has ended")
        return super().step(actions)
