"""Q-learning from replay, by priorities if they are wanted: what the replay role is tried with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveFloat, PositiveInt

from srlhpc.environment import Array, ArraySpec, FloatArray, Kind
from srlhpc.specs.contracts import Needs
from srlhpc.specs.named_modules import AlgorithmSettings
from tests.rules.action_values import ACTION_VALUES

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from tests.rules.action_values_modules import ActionValues


class Settings(AlgorithmSettings):
    learning_rate: PositiveFloat = 1e-2
    gamma: PositiveFloat = 0.99
    n_steps: PositiveInt = 2
    target_every_updates: PositiveInt = 20
    """Updates between two copies of the network into the target."""
    epsilon: float = 0.3
    """Probability of drawing any action."""

    def needs(self, kind: Kind) -> Needs:  # noqa: ARG002
        return Needs(
            ACTION_VALUES,
            {"q": ArraySpec((), "float32")},
            gives_feedback=True,
            data="replay",
            after=self.n_steps - 1,
            first_priorities="tests.rules.replayed_q:first_priorities",
        )

    def explore(self, columns: NDArray[np.int64], total: int, steps: int) -> Mapping[str, FloatArray]:  # noqa: ARG002
        return {"epsilon": np.full(len(columns), self.epsilon, np.float32)}

    def explore_in_evaluation(self) -> Mapping[str, float]:
        return {"epsilon": 0.0}


def first_priorities(settings: Settings, fields: Mapping[str, Array]) -> FloatArray:  # noqa: ARG001
    """How far the value of the first action was from its reward."""
    priorities: FloatArray = np.abs(fields["out.q"][0] - fields["rewards"][0])
    return priorities


def build(settings: Settings, policy: ActionValues, context: Context) -> Algorithm:
    from tests.rules.replayed_q_update import ReplayedQ

    return ReplayedQ(settings, policy, context)
