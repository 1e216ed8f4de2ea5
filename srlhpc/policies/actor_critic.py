"""The actor-critic policy that all shipped networks share: torso, optional memory, policy head and value head.

Letters: N rows, T records of a fragment, B columns, F features.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from srlhpc.environment import Kind
from srlhpc.policies.heads import PolicyHead, Scale, ValueHead
from srlhpc.policies.observations import Encoder, running_moments
from srlhpc.policies.policy import Acted, Evaluated, Policy, State
from srlhpc.policies.recurrent import Memory
from srlhpc.policies.torsos import Torso
from srlhpc.specs.experiment import NormalizeSpec


class ActorCritic(Policy):
    """Policy and value from one torso, or the value from its own.

    Args:
        kind: the agents it serves.
        encoder: from raw observations to the torso's input.
        torso: features of both heads, or of the policy head if there is a `value_torso`.
        value_torso: features of the value head; only without memory.
        memory: between torso and heads, or None.
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
        normalize: NormalizeSpec,
        initial_log_std: float = 0.0,
    ) -> None:
        super().__init__()
        assert memory is None or value_torso is None
        self.kind = kind
        self.encoder = encoder
        self.torso = torso
        self.value_torso = value_torso
        self.memory = memory
        features = torso.features if memory is None else memory.size
        self.policy_head = PolicyHead(features, kind.actions, initial_log_std)
        self.value_head = ValueHead(features if value_torso is None else value_torso.features)
        self.return_moments = running_moments(1, normalize) if normalize.returns else None
        self._returns = normalize.returns

    def initial_state(self, rows: int) -> dict[str, Tensor]:
        return self.memory.initial_state(rows) if self.memory is not None else {}

    @torch.no_grad()
    def act(
        self,
        observations: Mapping[str, Tensor],
        state: State,
        first: Tensor,
        *,
        action_masks: Tensor | None,
        generator: torch.Generator | None,
    ) -> Acted:
        encoded = self.encoder(observations)
        features: Tensor = self.torso(encoded)
        new_state: dict[str, Tensor] = {}
        if self.memory is not None:
            new_state = self.memory.step(features, state, first)
            features = new_state["h"]
        distribution = self.policy_head(features, action_masks)
        values = self.value_head(features if self.value_torso is None else self.value_torso(encoded))
        actions = distribution.mode() if generator is None else distribution.sample(generator)
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
        encoded = self.encoder(observations)
        features = self._unflatten(self.torso(encoded), first)
        if self.memory is not None:
            features = self.memory(features, state, first)
        value_features = features
        if self.value_torso is not None:
            value_features = self._unflatten(self.value_torso(encoded), first)
        return Evaluated(self.policy_head(features, action_masks), self.value_head(value_features))

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
        for moments in (self.encoder.moments, self.return_moments if self._returns is True else None):
            if moments is not None:
                moments.merge(sums[start : start + moments.sums_size])
                start += moments.sums_size

    @staticmethod
    def _unflatten(features: Tensor, first: Tensor) -> Tensor:
        return features if first.ndim == 1 else features.reshape(*first.shape, -1)
