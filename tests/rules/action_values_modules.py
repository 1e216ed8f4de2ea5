"""The module of the network `tests.rules.action_values`."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from srlhpc.environment import Discrete, Kind
from srlhpc.policies.layers.observations import ObservationEncoder
from srlhpc.policies.layers.torsos import MlpTorso
from srlhpc.policies.policy import NO_EXPLORATION, Acted, Exploration, Policy, State
from srlhpc.specs.policy import NormalizeSpec


class ActionValues(Policy):
    """One layer, then a value of each action."""

    def __init__(self, kind: Kind, hidden: int, normalize: NormalizeSpec) -> None:
        super().__init__()
        assert isinstance(kind.actions, Discrete)
        self.kind = kind
        self.encoder = ObservationEncoder(kind.observations, images=False, normalize=normalize)
        self.torso = MlpTorso(self.encoder.vector_size, [hidden], "relu")
        self.head = nn.Linear(hidden, kind.actions.choices)

    def initial_state(self, rows: int) -> dict[str, Tensor]:  # noqa: ARG002
        return {}

    def values(self, observations: Mapping[str, Tensor]) -> Tensor:
        """`[N, choices]`."""
        values: Tensor = self.head(self.torso(self.encoder(observations)))
        return values

    @torch.no_grad()
    def act(
        self,
        observations: Mapping[str, Tensor],
        state: State,  # noqa: ARG002
        first: Tensor,
        *,
        action_masks: Tensor | None,  # noqa: ARG002
        generator: torch.Generator | None,
        exploration: Exploration = NO_EXPLORATION,
    ) -> Acted:
        values = self.values(observations)
        actions = values.argmax(-1)
        if generator is not None:
            draws = torch.rand(len(first), generator=generator) < exploration["epsilon"]
            others = torch.randint(0, values.shape[-1], (len(first),), generator=generator)
            actions = torch.where(draws, others, actions)
        chosen = values.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        return Acted(actions, torch.zeros(len(first)), {"q": chosen}, {})
