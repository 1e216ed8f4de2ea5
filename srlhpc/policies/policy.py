"""What acts: a torch module that travels to policy servers, inline actors and evaluators as one flat vector.

What a learning rule asks of it beside, and what only trainers have, is in policies/contracts.py.

Letters: N rows (agents that act now; none where all wait for their turn).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from srlhpc.environment import Kind

State = Mapping[str, Tensor]
"""Recurrent state: name to `[N, ...]`; empty without memory."""

Exploration = Mapping[str, Tensor]
"""What a rule says of the exploration of each row: name to float32 `[N]`; empty for rules that say nothing of it."""

NO_EXPLORATION: Exploration = MappingProxyType({})


class Acted(NamedTuple):
    """What acting yields for N rows."""

    actions: Tensor
    """`[N, ...]`, int64 or float32."""
    log_probs: Tensor
    """float32 `[N]`, of the actions, summed over their parts."""
    outputs: dict[str, Tensor]
    """The declared outputs, `[N, ...]`; what `value` stands for, `return_values` says."""
    state: dict[str, Tensor]
    """State after this step."""


class Policy(nn.Module, ABC):
    """What acts for one kind of agents. Running statistics are buffers, so they travel with the parameters."""

    kind: Kind

    @property
    def stackable(self) -> bool:
        """Whether `torch.func.vmap` can map `act` over the parameters of many copies, and is worth it."""
        return False

    @abstractmethod
    def initial_state(self, rows: int) -> dict[str, Tensor]:
        """State at the start of an episode (zeros), `[rows, ...]`."""

    @abstractmethod
    def act(
        self,
        observations: Mapping[str, Tensor],
        state: State,
        first: Tensor,
        *,
        action_masks: Tensor | None,
        generator: torch.Generator | None,
        exploration: Exploration = NO_EXPLORATION,
    ) -> Acted:
        """Draws one action per row (the most probable one if `generator` is None). No gradients.

        Args:
            observations: key to `[N, ...]`, raw.
            state: before this step; rows with `first` use the initial state instead.
            first: bool `[N]`.
            action_masks: bool `[N, mask_size]`, or None.
            generator: randomness; None takes the mode.
            exploration: what the rule's Settings (`explore`) say of each row.
        """


def vector_size(policy: Policy) -> int:
    """Floats in the flat vector of a policy."""
    return sum(tensor.numel() for tensor in policy.state_dict().values())


@torch.no_grad()
def write_vector(policy: Policy, vector: np.ndarray) -> None:
    """Copies parameters and buffers into a float32 vector, in the order of `state_dict`."""
    tensors = list(policy.state_dict().values())
    target = torch.from_numpy(vector)
    # From a GPU they come together: one copy to the host, not one of each tensor.
    flat = target if tensors[0].device.type == "cpu" else torch.empty_like(target, device=tensors[0].device)
    for part, tensor in zip(torch.split(flat, [tensor.numel() for tensor in tensors]), tensors, strict=True):
        part.copy_(tensor.reshape(-1))
    if flat is not target:
        target.copy_(flat)


@torch.no_grad()
def read_vector(policy: Policy, vector: np.ndarray) -> None:
    """Copies a vector written by `write_vector` back into parameters and buffers."""
    tensors = list(policy.state_dict().values())
    flat = torch.from_numpy(vector).to(tensors[0].device)
    for part, tensor in zip(torch.split(flat, [tensor.numel() for tensor in tensors]), tensors, strict=True):
        tensor.copy_(part.view(tensor.shape))
