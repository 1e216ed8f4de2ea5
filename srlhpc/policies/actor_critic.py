"""The actor-critic policy that all shipped networks share: torso, optional memory, policy head and value head.

Letters: N rows, T records of a fragment, B columns, F features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from srlhpc.environment import Kind
from srlhpc.policies.contracts import ActorCriticPolicy, Evaluated
from srlhpc.policies.layers.features import normed, scan, step
from srlhpc.policies.layers.heads import PolicyHead, Scale, ValueHead
from srlhpc.policies.layers.observations import Encoder, running_moments
from srlhpc.policies.layers.recurrent import Memory
from srlhpc.policies.layers.torsos import Torso
from srlhpc.policies.policy import NO_EXPLORATION, Acted, Exploration, State
from srlhpc.specs.named_modules import CRITICS
from srlhpc.specs.policy import NormalizeSpec


class Features(NamedTuple):
    """What the heads take, `[T, B, F]`, or `[N, F]` of shuffled records."""

    policy: Tensor
    value: Tensor
    """The policy's own where both heads share a torso."""


class ActorCritic(ActorCriticPolicy):
    """Policy and value from one torso, or the value from its own.

    Args:
        kind: the agents it serves.
        encoder: from raw observations to the torso's input.
        torso: features of both heads, or of the policy head if there is a `value_torso`.
        value_torso: features of the value head.
        memory: between torso and heads, or None.
        value_memory: between value torso and value head; there exactly if both `value_torso` and `memory` are.
        norm: of the policy's features before the head, or None.
        value_norm: the same of the value torso's.
        normalize: how the value head's returns are normalised.
        initial_log_std: of continuous actions.
    """

    def __init__(
        self,
        kind: Kind,
        encoder: Encoder,
        torso: Torso,
        *,
        value_torso: Torso | None = None,
        memory: Memory | None = None,
        value_memory: Memory | None = None,
        norm: nn.Module | None = None,
        value_norm: nn.Module | None = None,
        normalize: NormalizeSpec,
        initial_log_std: float = 0.0,
    ) -> None:
        super().__init__()
        assert (value_memory is not None) == (memory is not None and value_torso is not None)
        assert value_norm is None or value_torso is not None
        self.kind = kind
        self.encoder = encoder
        self.torso, self.memory, self.norm = torso, memory, norm
        self.value_torso, self.value_memory, self.value_norm = value_torso, value_memory, value_norm
        features = torso.features if memory is None else memory.size
        self.policy_head = PolicyHead(features, kind.actions, initial_log_std)
        if value_torso is not None:
            features = value_torso.features if value_memory is None else value_memory.size
        self.value_head = ValueHead(features)
        self.return_moments = running_moments(1, normalize) if normalize.returns else None
        self._returns = normalize.returns

    @property
    def stackable(self) -> bool:
        return self.torso.stackable and self.memory is None and self.norm is None

    def initial_state(self, rows: int) -> dict[str, Tensor]:
        state = self.memory.initial_state(rows) if self.memory is not None else {}
        if self.value_memory is not None:
            state |= _renamed(self.value_memory.initial_state(rows))
        return state

    @torch.no_grad()
    def act(
        self,
        observations: Mapping[str, Tensor],
        state: State,
        first: Tensor,
        *,
        action_masks: Tensor | None,
        generator: torch.Generator | None,
        exploration: Exploration = NO_EXPLORATION,  # noqa: ARG002
    ) -> Acted:
        encoded = self.encoder(observations)
        features, new_state = step(self.torso(encoded), self.memory, state, first)
        features = normed(self.norm, features)
        distribution = self.policy_head(features, action_masks)
        if self.value_torso is not None:
            features, value_state = step(self.value_torso(encoded), self.value_memory, _critics(state), first)
            features, new_state = normed(self.value_norm, features), new_state | _renamed(value_state)
        values = self.value_head(features)
        actions = distribution.mode() if generator is None else distribution.sample(generator)
        # With targets_only a value is read with the statistics of the time when it is used (`return_values`).
        outputs = {"value": values if self._returns == "targets_only" else self.denormalize_values(values)}
        return Acted(actions, distribution.log_prob(actions), outputs, new_state)

    def evaluate(
        self,
        observations: Mapping[str, Tensor],
        state: State,
        first: Tensor,
        *,
        action_masks: Tensor | None,
    ) -> Evaluated:
        return self.heads(self.features(observations, state, first), action_masks)

    def features(self, observations: Mapping[str, Tensor], state: State, first: Tensor) -> Features:
        """What the heads take of whole fragments, with gradients. Arguments are those of `evaluate`."""
        encoded = self.encoder(observations)
        policy = normed(self.norm, scan(self.torso(encoded), self.memory, state, first))
        if self.value_torso is None:
            return Features(policy, policy)
        value = scan(self.value_torso(encoded), self.value_memory, _critics(state), first)
        return Features(policy, normed(self.value_norm, value))

    def heads(self, features: Features, action_masks: Tensor | None) -> Evaluated:
        """What the heads make of features."""
        return Evaluated(self.policy_head(features.policy, action_masks), self.value_head(features.value))

    def denormalize_values(self, values: Tensor) -> Tensor:
        return values if self.return_moments is None else self.return_moments.denormalize(values)

    def normalize_values(self, values: Tensor) -> Tensor:
        return values if self.return_moments is None else self.return_moments.normalize(values)

    def return_values(self, stored: Tensor) -> Tensor:
        return self.denormalize_values(stored) if self._returns == "targets_only" else stored

    def return_sums(self, returns: Tensor, valid: Tensor) -> Tensor:
        if self.return_moments is None or self._returns is True:
            return super().return_sums(returns, valid)
        return self.return_moments.sums(returns.reshape(-1, 1), valid.flatten())

    def update_returns(self, sums: Tensor) -> None:
        moments = self.return_moments
        if moments is None or sums[0].item() == 0:
            return
        before = Scale(moments.shift.clone(), moments.scale.clone())
        moments.merge(sums)
        if self._returns == "pop_art":
            self.value_head.rescale(before, Scale(moments.shift, moments.scale))

    @property
    def normalized_observations(self) -> frozenset[str]:
        return self.encoder.normalized

    def normalizer_sums(self, observations: Mapping[str, Tensor], returns: Tensor, valid: Tensor) -> Tensor:
        parts = [super().normalizer_sums(observations, returns, valid)]
        observation_sums = self.encoder.sums(observations, valid)
        if observation_sums is not None:
            parts.append(observation_sums)
        if self.return_moments is not None and self._returns is True:
            parts.append(self.return_moments.sums(returns.reshape(-1, 1), valid.flatten()))
        return torch.cat(parts)

    def update_normalizers(self, sums: Tensor) -> None:
        start = 0
        # In the order of `normalizer_sums`.
        for moments in (self.encoder.moments, self.return_moments if self._returns is True else None):
            if moments is not None:
                moments.merge(sums[start : start + moments.sums_size])
                start += moments.sums_size


def _renamed(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {CRITICS + name: tensor for name, tensor in state.items()}


def _critics(state: State) -> dict[str, Tensor]:
    return {name.removeprefix(CRITICS): rows for name, rows in state.items() if name.startswith(CRITICS)}
