"""What a user may set of V-trace."""

from __future__ import annotations

from typing import Annotated, Self

from annotated_types import Ge, Le
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, field_validator, model_validator

from srlhpc.environment import Kind
from srlhpc.errors import UserError
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.contracts import ACTOR_CRITIC, Needs
from srlhpc.specs.named_modules import AlgorithmSettings, NetworkSettings
from srlhpc.specs.schedule import Schedule, check_not_negative
from srlhpc.specs.spec import refusal

Fraction = Annotated[float, Ge(0.0), Le(1.0)]


class Settings(AlgorithmSettings):
    """Actor-critic with V-trace (IMPALA), which corrects for data that older parameters acted; with a clip, APPO.

    Defaults are those of RLlib's IMPALA where it uses Adam, which takes means of losses as we do.
    """

    elsewhere = {
        "lr": "learning_rate",
        **dict.fromkeys(("ent_coef", "entropy_coeff"), "entropy_coefficient"),
        **dict.fromkeys(("vf_coef", "vf_coeff", "baseline_cost"), "value_coefficient"),
        **dict.fromkeys(("grad_clip", "max_grad_norm"), "max_gradient_norm"),
        **dict.fromkeys(("vtrace_rho", "vtrace_clip_rho_threshold"), "rho_clip"),
        "vtrace_c": "c_clip",
        "vtrace_clip_pg_rho_threshold": "policy_rho_clip",
        **dict.fromkeys(("clip_param", "clip_range", "clip_coef"), "clip_ratio"),
        **dict.fromkeys(("epochs", "num_epochs", "num_sgd_iter"), "batch.uses of the policy"),
        **dict.fromkeys(("lambda", "gae_lambda"), "trace_lambda"),
    }

    learning_rate: Schedule = 5e-4
    """Adam's step size."""
    gamma: Fraction = 0.99
    """Discount of one step."""
    trace_lambda: Fraction = 1.0
    """Weight of longer returns in the value targets; 1 weighs them by ratios alone, as the paper does."""
    rho_clip: PositiveFloat = 1.0
    """Most that a ratio of new to behaviour's probability weighs a temporal difference; the larger, the nearer values
    are to those of the new policy, and the less steady."""
    c_clip: PositiveFloat | None = None
    """Most that a ratio weighs what comes later, at most rho_clip; null: 1, or rho_clip if that is less."""
    policy_rho_clip: PositiveFloat = 1.0
    """Most that a ratio weighs the gradient of the policy."""
    clip_ratio: Schedule | None = None
    """The policy gains nothing from ratios to the policy of `old_policy_updates` outside 1 +- this (APPO; RLlib has
    0.4); null: the plain policy gradient (IMPALA). Takes minibatches or old_policy_updates of 2 or more."""
    old_policy_updates: PositiveInt = 1
    """Updates after which the policy that ratios are clipped beside becomes that of now; only with clip_ratio."""
    lag_exponent: NonNegativeFloat = 0.0
    """Data counts (1 + its lag in updates) to the power of minus this; 0: as much, however old it is."""
    value_coefficient: NonNegativeFloat = 0.5
    """Weight of the value loss."""
    entropy_coefficient: Schedule = 0.01
    """Weight of the entropy bonus."""
    minibatches: PositiveInt = 1
    """Gradient steps of an update, each on other fragments."""
    max_gradient_norm: PositiveFloat | None = 40.0
    """Gradients of a larger norm are scaled down to it; null: never."""
    adam_epsilon: PositiveFloat = 1e-5
    """Adam's epsilon."""
    weight_decay: NonNegativeFloat = 0.0
    """L2 penalty: this times the parameters is added to their gradients."""

    _check_not_negative = field_validator("learning_rate", "clip_ratio", "entropy_coefficient")(check_not_negative)

    @model_validator(mode="after")
    def _check_clips(self) -> Self:
        if self.c_clip is not None and self.c_clip > self.rho_clip:
            raise refusal(f"is {self.c_clip:g}; it must be at most rho_clip, which is {self.rho_clip:g}", "c_clip")
        if self.old_policy_updates > 1 and self.clip_ratio is None:
            raise refusal(
                f"is {self.old_policy_updates}, but without clip_ratio no ratio is clipped; set clip_ratio, or leave "
                "it out",
                "old_policy_updates",
            )
        if self.clip_ratio is not None and self.minibatches == self.old_policy_updates == 1:
            raise refusal(
                f"is {self.clip_ratio}, but the only gradient step of an update starts from the policy that ratios are "
                "clipped beside, so it clips nothing; set minibatches or old_policy_updates to 2 or more",
                "clip_ratio",
            )
        return self

    def needs(self, kind: Kind) -> Needs:  # noqa: ARG002
        # Values are those of now, so acting's own need not travel.
        return Needs(ACTOR_CRITIC, normalizes=("observations", "returns"))

    def form(self, kind: Kind) -> object:
        # The policy that ratios are clipped beside is in the state.
        return super().form(kind), self.clip_ratio is not None

    def check(self, batch: BatchSpec, network: NetworkSettings) -> None:  # noqa: ARG002
        if batch.fragments % self.minibatches:
            raise UserError(
                f"algorithm.minibatches is {self.minibatches}, which does not divide a trainer's {batch.fragments} "
                "fragments (batch.fragments)"
            )
        if batch.chunks > 1:
            raise UserError(
                f"batch.chunk_steps is {batch.chunk_steps}, but V-trace sums over whole fragments; leave it out, and "
                "set batch.fragment_steps to as many records as gradients shall go back"
            )
