"""What a user may set of every rule that learns actions from labels."""

from __future__ import annotations

from pydantic import NonNegativeFloat, PositiveFloat, field_validator

from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.named_modules import AlgorithmSettings, NetworkSettings
from srlhpc.specs.schedule import Schedule, check_not_negative

ELSEWHERE = {
    "lr": "learning_rate",
    **dict.fromkeys(("ent_weight", "ent_coef"), "entropy_coefficient"),
    "l2_weight": "weight_decay",
    "batch_size": "batch.fragments of the policy",
    **dict.fromkeys(("epochs", "n_epochs"), "stop.updates, or stop.steps"),
}


class ImitationSettings(AlgorithmSettings):
    """The loss and its steps. Defaults are those of the package `imitation` (behaviour cloning), with Adam's."""

    learning_rate: Schedule = 1e-3
    """Adam's step size."""
    entropy_coefficient: Schedule = 1e-3
    """Weight of the entropy bonus."""
    max_gradient_norm: PositiveFloat | None = None
    """Gradients of a larger norm are scaled down to it; null: never."""
    adam_epsilon: PositiveFloat = 1e-8
    """Adam's epsilon."""
    weight_decay: NonNegativeFloat = 0.0
    """L2 penalty: this times the parameters is added to their gradients."""

    _check_not_negative = field_validator("learning_rate", "entropy_coefficient")(check_not_negative)

    def check(self, batch: BatchSpec, network: NetworkSettings) -> None:
        """Every batch and network with a distribution over actions will do."""
