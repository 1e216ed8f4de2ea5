"""A policy without a network: what it does is plain from its one weight, its state and what it sees."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from srlhpc.environment import ArraySpec, Discrete, Kind
from srlhpc.policies.contracts import ActorCriticPolicy, Evaluated
from srlhpc.policies.policy import NO_EXPLORATION, Acted, Exploration, State

KIND = Kind("agent", ("a", "b"), {"obs": ArraySpec((1,), "float32")}, Discrete(100))


class CountingPolicy(ActorCriticPolicy):
    """The state `h` counts records since `first`; action = state before, value = weight, log-probability = -obs."""

    def __init__(self, kind: Kind = KIND, *, recurrent: bool = True) -> None:
        super().__init__()
        self.kind = kind
        self.weight = nn.Parameter(torch.zeros(1))
        self.batches: list[int] = []
        self._recurrent = recurrent

    def initial_state(self, rows: int) -> dict[str, Tensor]:
        return {"h": torch.zeros(rows, 1)} if self._recurrent else {}

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
        rows = len(first)
        self.batches.append(rows)
        before = torch.where(first[:, None], 0.0, state["h"]) if self._recurrent else torch.zeros(rows, 1)
        noise = torch.rand(rows, generator=generator) if generator is not None else torch.zeros(rows)
        return Acted(
            before[:, 0].long(),
            -observations["obs"][:, 0],
            {"value": self.weight.detach().expand(rows) + 0.5 * noise},
            {"h": before + 1} if self._recurrent else {},
        )

    def evaluate(
        self, observations: Mapping[str, Tensor], state: State, first: Tensor, *, action_masks: Tensor | None
    ) -> Evaluated:
        raise NotImplementedError

    def denormalize_values(self, values: Tensor) -> Tensor:
        return values

    def normalize_values(self, values: Tensor) -> Tensor:
        return values
