"""An environment that draws from the generators of the process: of `random`, `numpy.random` and `torch`."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import torch

from srlhpc.environment import Array, Environment, SavedState, Spaces, Step
from srlhpc.specs.named_modules import EnvironmentSettings
from tests.scripted import Script, Scripted, scripted_spaces


class Settings(EnvironmentSettings):
    """What it offers."""

    saves: bool
    """Whether it can be saved. What it draws from cannot be told from its state."""
    agents: tuple[str, ...] = ("agent",)
    """Names of the agents, all of one kind."""

    def spaces(self) -> Spaces:
        return scripted_spaces({"agent": self.agents})


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    return (Saved if settings.saves else Drawing)([[Script(5)]] * num_environments, {"agent": settings.agents})


def draw() -> list[float]:
    return [random.gauss(0.0, 1.0), float(np.random.normal()), float(torch.rand(()))]


class Drawing(Scripted):
    def reset(self, seed: int) -> Step:
        return self._noisy(super().reset(seed))

    def step(self, actions: Mapping[str, Array]) -> Step:
        return self._noisy(super().step(actions))

    def save_state(self) -> SavedState | None:
        return None

    def _noisy(self, step: Step) -> Step:
        step.kinds["agent"].observations["obs"][:] = draw()
        return step


class Saved(Drawing):
    def save_state(self) -> SavedState:
        return {**Scripted.save_state(self), "obs": self._now["agent"].observations["obs"].copy()}

    def load_state(self, state: SavedState) -> Step:
        step = super().load_state(state)
        step.kinds["agent"].observations["obs"][:] = state["obs"]
        return step
