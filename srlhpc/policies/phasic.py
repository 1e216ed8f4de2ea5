"""What is trained in the contract `phasic_actor_critic`: an actor-critic, and a value that only trainers have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor, nn

from srlhpc.policies.actor_critic import ActorCritic
from srlhpc.policies.contracts import Evaluated
from srlhpc.policies.layers.heads import ValueHead
from srlhpc.policies.policy import State
from srlhpc.rl.distributions import Distribution
from srlhpc.specs.named_modules import NetworkSettings
from srlhpc.specs.policy import NormalizeSpec


class PhasicEvaluated(NamedTuple):
    """What the current parameters say about a fragment's records; shapes and units as in `Evaluated`."""

    distribution: Distribution
    values: Tensor
    auxiliary_values: Tensor
    """Values by the head on the policy's features."""


class PhasicActorCritic(nn.Module):
    """An actor-critic whose policy's features also learn a value (Cobbe et al. 2020, arXiv:2009.04416, section 2).

    Args:
        policy: what acts.
    """

    def __init__(self, policy: ActorCritic) -> None:
        super().__init__()
        self.policy = policy
        self.auxiliary_head = ValueHead(policy.policy_head.linear.in_features)

    def evaluate_apart(
        self, observations: Mapping[str, Tensor], state: State, first: Tensor, *, action_masks: Tensor | None
    ) -> Evaluated:
        """What `policy.evaluate` says; where both heads share features, these get no gradient of the value."""
        features = self.policy.features(observations, state, first)
        if features.value is features.policy:
            features = features._replace(value=features.value.detach())
        return self.policy.heads(features, action_masks)

    def evaluate(
        self, observations: Mapping[str, Tensor], state: State, first: Tensor, *, action_masks: Tensor | None
    ) -> PhasicEvaluated:
        """Distribution and both values, with all gradients. Arguments are those of `ActorCriticPolicy.evaluate`."""
        features = self.policy.features(observations, state, first)
        return PhasicEvaluated(*self.policy.heads(features, action_masks), self.auxiliary_head(features.policy))


def build_trained(
    settings: NetworkSettings,  # noqa: ARG001
    policy: ActorCritic,
    normalize: NormalizeSpec,  # noqa: ARG001
) -> PhasicActorCritic:
    """What trainers have around what acts."""
    return PhasicActorCritic(policy)
