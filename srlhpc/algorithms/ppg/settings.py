"""What a user may set of phasic policy gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, field_validator

from srlhpc.algorithms.ppg.kept_arrays import kept_arrays
from srlhpc.algorithms.ppo import settings as ppo
from srlhpc.environment import ArraySpec, Kind
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.contracts import PHASIC_ACTOR_CRITIC, VALUE_OUTPUT, Needs
from srlhpc.specs.named_modules import NetworkSettings
from srlhpc.specs.schedule import Schedule, check_not_negative


class Settings(ppo.Settings):
    """Phasic policy gradient: PPO, and after so many updates a phase in which the policy's features learn the value.

    Defaults are those of the authors' code (openai/phasic-policy-gradient), which normalises returns; their value loss
    has no factor 1/2, so their 0.5 is 1 here. The gradient's bound is PPO's, as in CleanRL; they have none.
    """

    elsewhere = {
        **ppo.Settings.elsewhere,
        **dict.fromkeys(("n_pi", "n_iteration"), "auxiliary_every_updates"),
        **dict.fromkeys(("e_aux", "n_aux_epochs", "e_auxiliary"), "auxiliary_epochs"),
        **dict.fromkeys(("aux_mbsize", "num_aux_rollouts"), "auxiliary_minibatches, of each kept batch"),
        "aux_lr": "auxiliary_learning_rate",
        "beta_clone": "kl_coefficient",
        "vf_true_weight": "true_value_coefficient",
        **dict.fromkeys(("e_pi", "e_v", "n_epoch_pi", "n_epoch_vf", "e_policy", "v_value"), "epochs"),
        "arch": "network.shared of the policy: false for dual, true for detach",
    }

    learning_rate: Schedule = 5e-4
    """Adam's step size in policy phases."""
    gamma: ppo.Fraction = 0.999
    """Discount of one step."""
    value_coefficient: NonNegativeFloat = 1.0
    """Weight of the value loss in policy phases."""
    entropy_coefficient: Schedule = 0.01
    """Weight of the entropy bonus."""
    epochs: PositiveInt = 1
    """Passes over each batch in its policy phase, of policy and value alike."""
    minibatches: PositiveInt = 8
    """Gradient steps of each of these passes; every trainer's batch is divided by it."""
    adam_epsilon: PositiveFloat = 1e-8
    """Adam's epsilon, in both phases."""
    auxiliary_every_updates: PositiveInt = 32
    """Updates on new batches from one auxiliary phase to the next; all their batches are kept for it."""
    auxiliary_epochs: PositiveInt = 6
    """Passes over the kept batches in an auxiliary phase."""
    auxiliary_minibatches: PositiveInt = 16
    """Gradient steps of each of these passes for each kept batch; a trainer's batch is divided by it."""
    auxiliary_learning_rate: Schedule = 5e-4
    """Adam's step size in auxiliary phases, which have an Adam of their own."""
    kl_coefficient: NonNegativeFloat = 1.0
    """Weight of the divergence from the policy at the beginning of the auxiliary phase."""
    true_value_coefficient: NonNegativeFloat = 1.0
    """Weight of the loss of the value that acts, beside that of the policy's features, in auxiliary phases."""
    keeps_in_checkpoints: bool = True
    """Whether checkpoints hold the kept batches. Without them a resumed run keeps anew, so its next auxiliary phase
    comes later; a serial run is exact only with them."""

    _check_phases = field_validator("auxiliary_learning_rate")(check_not_negative)

    def needs(self, kind: Kind) -> Needs:  # noqa: ARG002
        return Needs(PHASIC_ACTOR_CRITIC, VALUE_OUTPUT, normalizes=("observations", "returns"))

    def kept_bytes(self, batch: Mapping[str, ArraySpec]) -> int:
        arrays = kept_arrays(batch, self.auxiliary_every_updates).values()
        return sum(math.prod(array.shape) * np.dtype(array.dtype).itemsize for array in arrays)

    def check(self, batch: BatchSpec, network: NetworkSettings) -> None:
        super().check(batch, network)
        ppo.check_minibatches("auxiliary_minibatches", self.auxiliary_minibatches, batch, network)
