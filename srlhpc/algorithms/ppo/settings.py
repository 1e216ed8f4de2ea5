"""What a user may set of PPO."""

from __future__ import annotations

from typing import Annotated, Self

from annotated_types import Ge, Le
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, field_validator, model_validator

from srlhpc.environment import Kind
from srlhpc.errors import UserError
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.contracts import ACTOR_CRITIC, VALUE_OUTPUT, Needs
from srlhpc.specs.named_modules import AlgorithmSettings, NetworkSettings
from srlhpc.specs.schedule import Schedule, check_not_negative
from srlhpc.specs.spec import refusal

Fraction = Annotated[float, Ge(0.0), Le(1.0)]


class Settings(AlgorithmSettings):
    """Proximal policy optimisation with GAE."""

    elsewhere = {
        "lr": "learning_rate",
        **dict.fromkeys(("clip_range", "clip_coef", "eps_clip", "epsilon"), "clip_ratio"),
        **dict.fromkeys(("ent_coef", "entropy_coeff"), "entropy_coefficient"),
        **dict.fromkeys(("vf_coef", "vf_coeff"), "value_coefficient"),
        **dict.fromkeys(("update_epochs", "n_epochs"), "epochs"),
        "max_grad_norm": "max_gradient_norm",
        "lambda": "gae_lambda",
    }

    learning_rate: Schedule = 3e-4
    """Adam's step size."""
    gamma: Fraction = 0.99
    """Discount of one step."""
    gae_lambda: Fraction = 0.95
    """Weight of longer returns in the advantage estimate."""
    clip_ratio: Schedule = 0.2
    """The policy gains nothing from ratios of new to old probability outside 1 +- this."""
    value_clip: PositiveFloat | None = None
    """Largest useful change of a value, in units of the value head; null: none."""
    value_coefficient: NonNegativeFloat = 0.5
    """Weight of the value loss."""
    entropy_coefficient: Schedule = 0.0
    """Weight of the entropy bonus."""
    epochs: PositiveInt = 4
    """Passes over each batch."""
    minibatches: PositiveInt = 4
    """Gradient steps of each pass; every trainer's batch is divided by it."""
    normalize_advantages: bool = True
    """Scale the advantages of a batch to zero mean and unit variance."""
    max_gradient_norm: PositiveFloat | None = 0.5
    """Gradients of a larger norm are scaled down to it; null: never."""
    adam_epsilon: PositiveFloat = 1e-5
    """Adam's epsilon."""
    weight_decay: NonNegativeFloat = 0.0
    """L2 penalty: this times the parameters is added to their gradients."""
    lag_exponent: NonNegativeFloat = 0.0
    """Data counts (1 + its lag in updates) to the power of minus this; 0: as much, however old it is."""
    stale_ratio_clip: Annotated[float, Ge(1.0)] | None = None
    """Ratios of data that older parameters acted count as this at most, and give no gradient above it; null: whatever
    they are."""
    decoupled: bool = False
    """Clip ratios to the policy at the beginning of the update instead of to the one that acted, and weigh data by the
    ratio between the two (Hilton et al. 2021, arXiv:2110.00641); costs one more pass without gradients."""
    decoupled_ratio_clip: PositiveFloat | None = None
    """Most that this ratio weighs; null: whatever it is. Only with decoupled."""
    target_kl: PositiveFloat | None = None
    """No further epoch after one whose mean divergence from the behaviour policy is above this; null: all epochs."""

    _check_not_negative = field_validator("learning_rate", "clip_ratio", "entropy_coefficient")(check_not_negative)

    @model_validator(mode="after")
    def _check_decoupled(self) -> Self:
        if self.decoupled_ratio_clip is not None and not self.decoupled:
            raise refusal(
                f"is {self.decoupled_ratio_clip:g}, but decoupled is false, so nothing is weighed by that ratio; set "
                "decoupled: true, or leave it out",
                "decoupled_ratio_clip",
            )
        return self

    def needs(self, kind: Kind) -> Needs:  # noqa: ARG002
        return Needs(ACTOR_CRITIC, VALUE_OUTPUT, normalizes=("observations", "returns"))

    def check(self, batch: BatchSpec, network: NetworkSettings) -> None:
        check_minibatches("minibatches", self.minibatches, batch, network)


def check_minibatches(key: str, minibatches: int, batch: BatchSpec, network: NetworkSettings) -> None:
    """Raises UserError if a trainer's batch cannot be divided so; `key` is the setting's."""
    if network.recurrent is not None:
        size, unit = batch.fragments * batch.chunks, "fragments or their chunks (with memory, they stay whole)"
    else:
        size, unit = batch.fragments * batch.fragment_steps, "records (batch.fragments * batch.fragment_steps)"
    if size % minibatches:
        raise UserError(f"algorithm.{key} is {minibatches}, which does not divide a trainer's batch of {size} {unit}")
