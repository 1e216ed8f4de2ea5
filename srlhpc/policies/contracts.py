"""What learning rules train: the abstract classes of contracts that a network can offer.

Letters: N rows (agents that act now), T records of a fragment, B columns of a batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn

from srlhpc.policies.policy import Policy, State
from srlhpc.rl.distributions import Distribution

_Distribution = TypeVar("_Distribution")
"""What the head of an actor says of its actions; it follows from the rule's `Needs.head`."""


class Evaluated(NamedTuple):
    """What the current parameters say about a fragment's records."""

    distribution: Distribution
    """Distribution over actions, batch shape `[T, B]` (or `[N]` for shuffled records)."""
    values: Tensor
    """float32, as the head predicts them: in units of the return, or scaled if returns are normalised."""


class Evaluate(Protocol):
    """What says it: `ActorCriticPolicy.evaluate`, or what stands for it."""

    def __call__(
        self, observations: Mapping[str, Tensor], state: State, first: Tensor, *, action_masks: Tensor | None
    ) -> Evaluated: ...


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

    @property
    def normalized_observations(self) -> frozenset[str]:
        """Keys of the observations that `normalizer_sums` reads, which alone it may be given; by default all."""
        return frozenset(self.kind.observations)

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


class ContinuousActor(Policy, Generic[_Distribution]):
    """What acts in the contract `actor_and_critics`; without memory.

    What it says of its actions is a `srlhpc.rl.squashed_gaussian.SquashedGaussian` with a `SquashedGaussianHead`, a
    `srlhpc.rl.deterministic.Deterministic` with a `DeterministicHead`.
    """

    @abstractmethod
    def encode(self, observations: Mapping[str, Tensor]) -> Any:
        """What actor and critics take, all leading axes of the raw observations as one; it has no gradient."""

    @abstractmethod
    def distribution(self, encoded: Any) -> _Distribution:
        """What is said of actions in [-1, 1], batch shape `[N]`, with gradients."""


class Critics(nn.Module, ABC):
    """Values of actions by several critics that share no parameter."""

    @abstractmethod
    def forward(self, encoded: Any, actions: Tensor) -> Tensor:
        """Q(s, a) of each of C critics, float32 `[C, N]`.

        Args:
            encoded: what the actor's `encode` gives, N rows.
            actions: float32 `[N, D]` in [-1, 1].
        """

    def first(self, encoded: Any, actions: Tensor) -> Tensor:
        """Q(s, a) of the first critic alone, float32 `[N]`; args as in `forward`."""
        values: Tensor = self(encoded, actions)
        return values[0]


class ActorAndCritics(nn.Module, Generic[_Distribution]):
    """Contract `actor_and_critics`: what is trained; the actor alone acts and travels.

    Args:
        actor: the policy.
        critics: they hold no parameter of the actor.
    """

    def __init__(self, actor: ContinuousActor[_Distribution], critics: Critics) -> None:
        super().__init__()
        self.actor, self.critics = actor, critics


class ActionValues(NamedTuple):
    """What the current parameters say about each of K actions."""

    means: Tensor
    """The expected return, float32 `[..., K]`; forbidden actions have one too."""
    parts: Tensor | None
    """Where the head tells of the distribution of the return: its quantiles, or the log-probabilities of its atoms,
    float32 `[..., K, parts]`."""


class ActionValuePolicy(Policy):
    """Contract `action_values`: discrete actions, the values of which act."""

    @property
    @abstractmethod
    def support(self) -> Tensor | None:
        """The returns of the head's atoms, float32 `[atoms]`; None if it has none."""

    @abstractmethod
    def action_values(
        self,
        observations: Mapping[str, Tensor],
        state: State,
        first: Tensor,
        *,
        action_masks: Tensor | None,
    ) -> ActionValues:
        """Values of all actions, with gradients.

        Args:
            observations: key to `[T, B, ...]`, raw; a policy without memory also takes `[N, ...]`.
            state: at t = 0, `[B, ...]`.
            first: bool `[T, B]`: the state is reset there, before the record is seen.
            action_masks: bool `[T, B, K]`, or None.
        """

    @abstractmethod
    def warm_up(self, observations: Mapping[str, Tensor], state: State, first: Tensor) -> dict[str, Tensor]:
        """The state after T records that are only looked at, as acting would have it. No gradients.

        Args and letters are those of `action_values`.
        """
