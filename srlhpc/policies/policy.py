"""The policy contract: a torch module that acts, is trained, and travels as one flat vector.

Letters: N rows (agents that act now), T records of a fragment, B columns of a batch, D action size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from srlhpc.environment import Kind
from srlhpc.rl.distributions import Distribution

State = Mapping[str, Tensor]
"""Recurrent state: name to `[N, ...]`; empty without memory."""


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


class Evaluated(NamedTuple):
    """What the current parameters say about a fragment's records."""

    distribution: Distribution
    """Over actions, batch shape `[T, B]` (or `[N]` for shuffled records)."""
    values: Tensor
    """float32, as the head predicts them: in units of the return, or scaled if returns are normalised."""


class Policy(nn.Module, ABC):
    """One network for one kind of agents. Running statistics are buffers, so they travel with the parameters."""

    kind: Kind

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
    ) -> Acted:
        """Draws one action per row (the most probable one if `generator` is None). No gradients.

        Args:
            observations: key to `[N, ...]`, raw.
            state: before this step; rows with `first` use the initial state instead.
            first: bool `[N]`.
            action_masks: bool `[N, mask_size]`, or None.
            generator: randomness; None takes the mode.
        """

    @abstractmethod
    def evaluate(
        self,
        observations: Mapping[str, Tensor],
        state: State,
        first: Tensor,
        *,
        action_masks: Tensor | None,
    ) -> Evaluated:
        """Distribution and values of whole fragments, with gradients.

        Args:
            observations: key to `[T, B, ...]`, raw; a policy without memory also takes `[N, ...]`.
            state: at t = 0, `[B, ...]`.
            first: bool `[T, B]`: the state is reset there, before the record is seen.
            action_masks: bool `[T, B, mask_size]`, or None.
        """

    @torch.no_grad()
    def warm_up(
        self,
        observations: Mapping[str, Tensor],
        state: State,
        first: Tensor,
        *,
        action_masks: Tensor | None,
    ) -> State:
        """The state after T records that are only looked at, as acting would have it. No gradients.

        Args and letters are those of `evaluate`.
        """
        for t in range(len(first)):
            state = self.act(
                {key: array[t] for key, array in observations.items()},
                state,
                first[t],
                action_masks=None if action_masks is None else action_masks[t],
                generator=None,
            ).state
        return state

    @abstractmethod
    def denormalize_values(self, values: Tensor) -> Tensor:
        """Head values in units of the return (the identity unless returns are normalised)."""

    @abstractmethod
    def normalize_values(self, values: Tensor) -> Tensor:
        """The inverse of `denormalize_values`."""

    def return_values(self, stored: Tensor) -> Tensor:
        """The output `value` of acting, possibly with earlier parameters, in units of the return."""
        return stored

    def return_sums(self, returns: Tensor, valid: Tensor) -> Tensor:
        """What `update_returns` takes, to be added over trainers first; empty if it takes nothing.

        Args:
            returns: float32 `[T, B]`, value targets in units of the return.
            valid: bool `[T, B]`; other records count in nothing.

        Returns:
            float64, flat, of a size that does not depend on the data.
        """
        del valid
        return returns.new_empty(0, dtype=torch.float64)

    def update_returns(self, sums: Tensor) -> None:
        """Takes returns into the running statistics before they are normalised."""

    def normalizer_sums(self, observations: Mapping[str, Tensor], returns: Tensor, valid: Tensor) -> Tensor:
        """What `update_normalizers` takes, to be added over trainers first; empty if nothing is normalised.

        Args:
            observations: key to `[T, B, ...]`, raw.
            returns: float32 `[T, B]`, value targets in units of the return.
            valid: bool `[T, B]`; other records count in nothing.

        Returns:
            float64, flat, of a size that does not depend on the data.
        """
        del observations, valid
        return returns.new_empty(0, dtype=torch.float64)

    def update_normalizers(self, sums: Tensor) -> None:
        """Takes the records that `sums` stand for into the running statistics."""


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
