"""What learning rules train: the abstract classes of contracts that a network can offer.

Letters: N rows (agents that act now), T records of a fragment, B columns of a batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.policies.policy import Policy, State
from srlhpc.rl.distributions import Distribution


class Evaluated(NamedTuple):
    """What the current parameters say about a fragment's records."""

    distribution: Distribution
    """Distribution over actions, batch shape `[T, B]` (or `[N]` for shuffled records)."""
    values: Tensor
    """float32, as the head predicts them: in units of the return, or scaled if returns are normalised."""


class ActorCriticPolicy(Policy):
    """Contract `actor_critic`: the value is an output of acting, so the critic acts and travels too."""

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
