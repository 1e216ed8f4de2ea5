"""What a user may set of TD3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, field_validator

from srlhpc.algorithms.replayed_critics import ELSEWHERE, refuse_memory, replayed_needs
from srlhpc.environment import FloatArray, Kind
from srlhpc.specs.actor_heads import DeterministicHead
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.contracts import Needs
from srlhpc.specs.exploration import GaussianNoise
from srlhpc.specs.named_modules import AlgorithmSettings, NetworkSettings
from srlhpc.specs.schedule import Schedule, check_not_negative
from srlhpc.specs.spec import refusal


class Settings(AlgorithmSettings):
    """Twin delayed deterministic policy gradients (TD3), from replay; for continuous actions.

    Defaults are those of the paper where CleanRL's `td3_continuous_action.py` agrees, and CleanRL's else.
    """

    elsewhere = {
        **ELSEWHERE,
        **dict.fromkeys(("policy_delay", "policy_frequency", "policy_freq", "delay"), "actor_every_updates"),
        **dict.fromkeys(("policy_noise", "target_policy_noise", "target_sigma"), "target_noise"),
        "noise_clip": "target_noise_clip",
        **dict.fromkeys(("exploration_noise", "action_noise", "expl_noise", "sigma"), "exploration: {std: ...}"),
        **dict.fromkeys(("learning_starts", "start_timesteps"), "exploration: {uniform_steps: ...}"),
    }

    actor_learning_rate: Schedule = 3e-4
    """Adam's step size of the actor. Default: CleanRL's; the paper has 1e-3."""
    critic_learning_rate: Schedule = 3e-4
    """Adam's step size of the critics. Default: CleanRL's; the paper has 1e-3."""
    gamma: Annotated[float, Ge(0.0), Le(1.0)] = 0.99
    """Discount of one step."""
    polyak: Annotated[float, Gt(0.0), Le(1.0)] = 0.005
    """Share of the way to actor and critics that their targets go when they move."""
    actor_every_updates: PositiveInt = 2
    """Updates of the critics between two moves of the actor, and of the targets with it."""
    critic_targets_every_update: bool = False
    """Whether the critics' targets move at every update (as in Acme) instead of with the actor."""
    target_noise: NonNegativeFloat = 0.2
    """Standard deviation of the noise on actions of which targets take the value; actions lie in [-1, 1]."""
    target_noise_clip: NonNegativeFloat = 0.5
    """Most that this noise changes an action in each dimension."""
    max_gradient_norm: PositiveFloat | None = None
    """Gradients of a larger norm are scaled down to it, the actor's and the critics' each by its own; null: never."""
    adam_epsilon: PositiveFloat = 1e-8
    """Adam's epsilon."""
    exploration: GaussianNoise = GaussianNoise()
    """How acting explores."""

    _check_not_negative = field_validator("actor_learning_rate", "critic_learning_rate")(check_not_negative)

    def needs(self, kind: Kind) -> Needs:
        return replayed_needs("td3", kind, DeterministicHead())

    def explore(self, columns: NDArray[np.int64], total: int, steps: int) -> Mapping[str, FloatArray]:
        return self.exploration.numbers(columns, total, steps)

    def explore_in_evaluation(self) -> Mapping[str, float]:
        return self.exploration.in_evaluation()

    def check(self, batch: BatchSpec, network: NetworkSettings) -> None:  # noqa: ARG002
        refuse_memory("td3", network)
        if network.initial_log_std != type(network).model_fields["initial_log_std"].default:
            raise refusal(
                f"is {network.initial_log_std}, but td3 trains an actor without a standard deviation; leave it out, "
                "and set algorithm.exploration.std",
                *("network", "initial_log_std"),
            )
