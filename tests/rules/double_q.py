"""Double Q-learning (van Hasselt et al. 2016, arXiv:1509.06461) from fresh fragments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveFloat, PositiveInt

from srlhpc.environment import ArraySpec, FloatArray, Kind
from srlhpc.specs.contracts import Needs
from srlhpc.specs.named_modules import AlgorithmSettings
from srlhpc.specs.schedule import Schedule, value_at
from tests.rules.action_values import ACTION_VALUES

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from tests.rules.action_values_modules import ActionValues


class Settings(AlgorithmSettings):
    learning_rate: PositiveFloat = 1e-2
    gamma: PositiveFloat = 0.99
    target_every_updates: PositiveInt = 4
    """Updates between two copies of the network into the target."""
    base: PositiveFloat = 0.4
    """Probability of drawing any action, in column 0."""
    exponent: float = 7.0
    """The last column's is the base to the power of 1 + this (Horgan et al. 2018, arXiv:1803.00933)."""
    scale: Schedule = 1.0
    """Factor on the probabilities of all columns."""

    def needs(self, kind: Kind) -> Needs:  # noqa: ARG002
        return Needs(ACTION_VALUES, {"q": ArraySpec((), "float32")})

    def explore(self, columns: NDArray[np.int64], total: int, steps: int) -> Mapping[str, FloatArray]:
        ladder = self.base ** (1 + self.exponent * columns / max(1, total - 1))
        return {"epsilon": (value_at(self.scale, steps) * ladder).astype(np.float32)}

    def explore_in_evaluation(self) -> Mapping[str, float]:
        return {"epsilon": 0.0}


def build(settings: Settings, policy: ActionValues, context: Context) -> Algorithm:
    from tests.rules.double_q_update import DoubleQ

    return DoubleQ(settings, policy, context)
