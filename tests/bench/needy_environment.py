"""An environment whose package nobody has."""

from __future__ import annotations

from typing import ClassVar

from srlhpc.environment import Environment, Spaces
from srlhpc.specs.named_modules import EnvironmentSettings
from tests.scripted import scripted_spaces


class Settings(EnvironmentSettings):
    """Nothing to set."""

    requires: ClassVar[dict[str, str]] = {"no_such_package": "arena"}

    def spaces(self) -> Spaces:
        return scripted_spaces({"agent": ("agent",)})


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    raise AssertionError
