"""The modules of the network `tests.rules.critic_beside`."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from srlhpc.environment import Kind
from srlhpc.policies.layers.heads import PolicyHead, ValueHead
from srlhpc.policies.layers.observations import ObservationEncoder
from srlhpc.policies.layers.torsos import MlpTorso
from srlhpc.policies.policy import NO_EXPLORATION, Acted, Exploration, Policy, State
from srlhpc.rl.distributions import Distribution
from srlhpc.specs.policy import NormalizeSpec


class Actor(Policy):
    """What acts: no value is among its outputs."""

    def __init__(self, kind: Kind, hidden: int, normalize: NormalizeSpec) -> None:
        super().__init__()
        self.kind = kind
        self.encoder = ObservationEncoder(kind.observations, images=False, normalize=normalize)
        self.torso = MlpTorso(self.encoder.vector_size, [hidden], "tanh")
        self.head = PolicyHead(hidden, kind.actions)

    def initial_state(self, rows: int) -> dict[str, Tensor]:  # noqa: ARG002
        return {}

    def distribution(self, observations: Mapping[str, Tensor], action_masks: Tensor | None) -> Distribution:
        """Over actions of `[N, ...]`."""
        distribution: Distribution = self.head(self.torso(self.encoder(observations)), action_masks)
        return distribution

    @torch.no_grad()
    def act(
        self,
        observations: Mapping[str, Tensor],
        state: State,  # noqa: ARG002
        first: Tensor,  # noqa: ARG002
        *,
        action_masks: Tensor | None,
        generator: torch.Generator | None,
        exploration: Exploration = NO_EXPLORATION,  # noqa: ARG002
    ) -> Acted:
        distribution = self.distribution(observations, action_masks)
        actions = distribution.mode() if generator is None else distribution.sample(generator)
        return Acted(actions, distribution.log_prob(actions), {}, {})


class ActorBesideCritic(nn.Module):
    """What is trained."""

    def __init__(self, policy: Actor, hidden: int) -> None:
        super().__init__()
        self.policy = policy
        self.critic = nn.Sequential(nn.Linear(policy.encoder.vector_size, hidden), nn.Tanh(), ValueHead(hidden))

    def values(self, observations: Mapping[str, Tensor]) -> Tensor:
        """Of `[N, ...]`."""
        values: Tensor = self.critic(self.policy.encoder(observations).vector)
        return values
