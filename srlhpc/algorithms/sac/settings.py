"""What a user may set of SAC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray
from pydantic import NonNegativeFloat, PositiveFloat, field_validator, model_validator

from srlhpc.algorithms.replayed_critics import ELSEWHERE, refuse_memory, replayed_needs
from srlhpc.environment import FloatArray, Kind
from srlhpc.specs.actor_heads import SquashedGaussianHead
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.contracts import Needs
from srlhpc.specs.exploration import UniformStart
from srlhpc.specs.named_modules import AlgorithmSettings, NetworkSettings
from srlhpc.specs.schedule import Schedule, check_not_negative
from srlhpc.specs.spec import refusal

_HEAD = SquashedGaussianHead()


class Settings(AlgorithmSettings):
    """Soft actor-critic with twin critics, from replay; for continuous actions.

    Defaults are those of the paper (table 1) where CleanRL's `sac_continuous_action.py` agrees, and CleanRL's else.
    """

    elsewhere = {
        **ELSEWHERE,
        **dict.fromkeys(("alpha", "ent_coef", "entropy_coefficient"), "temperature"),
    }

    actor_learning_rate: Schedule = 3e-4
    """Adam's step size of the actor."""
    critic_learning_rate: Schedule = 1e-3
    """Adam's step size of the critics. Default: CleanRL's; the paper has 3e-4."""
    temperature: Literal["auto"] | NonNegativeFloat = "auto"
    """Weight of the entropy beside the return. auto: begins at 1 and is trained so that the entropy is target_entropy
    on average."""
    temperature_learning_rate: Schedule | None = None
    """Adam's step size of the temperature's logarithm; null: that of the critics."""
    target_entropy: Literal["auto"] | float = "auto"
    """Entropy in nats that an automatic temperature keeps, of actions in [-1, 1]; auto: minus their dimensions."""
    gamma: Annotated[float, Ge(0.0), Le(1.0)] = 0.99
    """Discount of one step."""
    polyak: Annotated[float, Gt(0.0), Le(1.0)] = 0.005
    """Share of the way to the critics that their targets go at each update."""
    max_gradient_norm: PositiveFloat | None = None
    """Gradients of a larger norm are scaled down to it, the actor's and the critics' each by its own; null: never."""
    adam_epsilon: PositiveFloat = 1e-8
    """Adam's epsilon."""
    exploration: UniformStart = UniformStart()
    """How acting explores beyond its own entropy."""

    _check_not_negative = field_validator("actor_learning_rate", "critic_learning_rate", "temperature_learning_rate")(
        check_not_negative
    )

    @model_validator(mode="after")
    def _check_temperature(self) -> Self:
        if self.temperature != "auto":
            for key, default in (("target_entropy", "auto"), ("temperature_learning_rate", None)):
                if getattr(self, key) != default:
                    raise refusal(
                        f"is {getattr(self, key)}, but temperature is {self.temperature}, which nothing trains; leave "
                        "it out, or set temperature to auto",
                        key,
                    )
        return self

    def needs(self, kind: Kind) -> Needs:
        return replayed_needs("sac", kind, _HEAD)

    def form(self, kind: Kind) -> object:
        # What is trained of the temperature is in the state.
        return super().form(kind), self.temperature == "auto"

    def explore(self, columns: NDArray[np.int64], total: int, steps: int) -> Mapping[str, FloatArray]:
        return self.exploration.numbers(columns, total, steps)

    def explore_in_evaluation(self) -> Mapping[str, float]:
        return self.exploration.in_evaluation()

    def check(self, batch: BatchSpec, network: NetworkSettings) -> None:  # noqa: ARG002
        refuse_memory("sac", network)
        low, high = _HEAD.log_stds
        if not low < network.initial_log_std < high:
            raise refusal(
                f"is {network.initial_log_std}; with sac it must lie between {low:g} and {high:g}",
                *("network", "initial_log_std"),
            )
