"""How rules explore that draw some of their actions at random: numbers for each column of a policy."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, NonNegativeInt, field_validator

from srlhpc.environment import FloatArray
from srlhpc.specs.schedule import LinearSchedule, Schedule, check_not_negative, check_probability, value_at
from srlhpc.specs.spec import Spec

Probability = Annotated[float, Ge(0.0), Le(1.0)]


class Epsilon(Spec):
    """Every column draws any allowed action with the same probability."""

    kind: Literal["epsilon"] = "epsilon"
    value: Schedule = LinearSchedule(start=1.0, end=0.1, steps=1_000_000)
    """Probability of drawing any action. Default: Mnih et al. 2015 (Nature 518, extended data table 1)."""
    evaluation: Probability = 0.0
    """The same for whoever acts without being trained."""

    _check_probability = field_validator("value")(check_probability)

    def probabilities(self, columns: NDArray[np.int64], total: int, steps: int) -> FloatArray:  # noqa: ARG002
        """The probability of each column, float32 `[len(columns)]`; args as in `AlgorithmSettings.explore`."""
        return np.full(len(columns), value_at(self.value, steps), np.float32)


class Ladder(Spec):
    """Every column draws any allowed action with a probability of its own, the same throughout.

    epsilon_i = base ^ (1 + exponent * i / (N - 1)) (Horgan et al. 2018, section 4; arXiv:1803.00933): column 0 of N
    explores most. A single column has the base.
    """

    kind: Literal["ladder"] = "ladder"
    base: Annotated[float, Gt(0.0), Le(1.0)] = 0.4
    """Probability of drawing any action, in column 0."""
    exponent: NonNegativeFloat = 7.0
    """The last column's is the base to the power of 1 + this."""
    evaluation: Probability = 0.0
    """The same for whoever acts without being trained."""

    def probabilities(self, columns: NDArray[np.int64], total: int, steps: int) -> FloatArray:  # noqa: ARG002
        """The probability of each column, float32 `[len(columns)]`; args as in `AlgorithmSettings.explore`."""
        return (self.base ** (1 + self.exponent * columns / max(1, total - 1))).astype(np.float32)


class UniformStart(Spec):
    """Every column draws actions uniformly from [-1, 1] at first, later from the policy's own distribution."""

    kind: Literal["uniform_start"] = "uniform_start"
    steps: NonNegativeInt = 5000
    """Trained steps of the policy from which on its distribution acts; 0: from the start. Nothing is trained before
    `replay.start_steps`, so uniform actions last until then at least. Default: CleanRL's (`learning_starts`)."""
    evaluation: NonNegativeFloat = 0.0
    """Factor of the distribution's standard deviation for whoever acts without being trained: 0 is the mode, 1 draws
    as in training."""

    def numbers(self, columns: NDArray[np.int64], total: int, steps: int) -> dict[str, FloatArray]:  # noqa: ARG002
        """What `in_evaluation` names for each column, float32 `[len(columns)]`; args as in `AlgorithmSettings.explore`.

        `uniform` is 1 where actions are drawn uniformly, `noise` the factor of the standard deviation elsewhere.
        """
        start = np.full(len(columns), steps < self.steps, np.float32)
        return {"uniform": start, "noise": np.ones(len(columns), np.float32)}

    def in_evaluation(self) -> dict[str, float]:
        """The same numbers for whoever acts without being trained."""
        return {"uniform": 0.0, "noise": self.evaluation}


class GaussianNoise(Spec):
    """Every column draws actions uniformly from [-1, 1] at first, later takes the policy's with noise, clipped there.

    The noise is Gaussian, and drawn anew for each action.
    """

    elsewhere = {"steps": "uniform_steps"}

    kind: Literal["gaussian_noise"] = "gaussian_noise"
    std: Schedule = 0.1
    """Standard deviation of the noise. Default: Fujimoto et al. 2018 (arXiv:1802.09477, section 6.1)."""
    uniform_steps: NonNegativeInt = 25_000
    """Trained steps of the policy from which on its actions are taken; 0: from the start. Nothing is trained before
    `replay.start_steps`, so uniform actions last until then at least. Default: CleanRL's (`learning_starts`)."""
    evaluation: NonNegativeFloat = 0.0
    """Standard deviation for whoever acts without being trained."""

    _check_not_negative = field_validator("std")(check_not_negative)

    def numbers(self, columns: NDArray[np.int64], total: int, steps: int) -> dict[str, FloatArray]:  # noqa: ARG002
        """What `in_evaluation` names for each column, float32 `[len(columns)]`; args as in `AlgorithmSettings.explore`.

        `uniform` is 1 where actions are drawn uniformly, `std` the standard deviation of the noise elsewhere.
        """
        return {
            "uniform": np.full(len(columns), steps < self.uniform_steps, np.float32),
            "std": np.full(len(columns), value_at(self.std, steps), np.float32),
        }

    def in_evaluation(self) -> dict[str, float]:
        """The same numbers for whoever acts without being trained."""
        return {"uniform": 0.0, "std": self.evaluation}


RandomActions = Annotated[Epsilon | Ladder, Field(discriminator="kind")]
