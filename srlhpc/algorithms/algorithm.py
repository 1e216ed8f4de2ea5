"""The algorithm contract: how a policy learns from one batch.

Letters: T records of a fragment (burn-in included), B columns (fragments) of a trainer's batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass
class Batch:
    """Fragments of one update on the trainer's device, time-major. Fields are those of data/blocks.py.

    `observations` have T + 1 entries; the last is the bootstrap. Burn-in records are the first `burn_in_steps`.
    """

    observations: dict[str, Tensor]
    """Key to `[T + 1, B, ...]`."""
    actions: Tensor
    """`[T, B, ...]`."""
    log_probs: Tensor
    """float32 `[T, B]`: of the behaviour policy."""
    rewards: Tensor
    """float32 `[T, B]`."""
    terminated: Tensor
    truncated: Tensor
    """bool `[T, B]`."""
    first: Tensor
    """bool `[T + 1, B]`."""
    valid: Tensor
    """bool `[T, B]`: the record counts; false in burn-in too."""
    versions: Tensor
    """int64 `[T, B]`: of the behaviour policy."""
    outputs: dict[str, Tensor]
    """Declared outputs of the behaviour policy, `[T, B, ...]`."""
    state: dict[str, Tensor]
    """Recurrent state before t = 0, `[B, ...]`; empty without memory."""
    chunk_states: dict[str, Tensor]
    """Recurrent states before the other C - 1 of C equal chunks of a fragment, `[C - 1, B, ...]`; empty if C = 1."""
    final_state: dict[str, Tensor]
    """Recurrent state before the bootstrap observation, `[B, ...]`."""
    action_masks: Tensor | None
    """bool `[T + 1, B, mask_size]`, or None."""
    burn_in_steps: int
    version: int
    """The trainer's version when the update starts."""
    steps: int
    """Trained steps of the policy before this update, over all trainers (drives schedules)."""
    is_first_use: bool = True
    """False: an earlier update learnt from the same batch (`batch.uses`)."""


@dataclass(frozen=True)
class Update:
    """What one update brought."""

    metrics: Mapping[str, float]
    """Name to number, equal on all trainers."""
    feedback: Tensor | None = None
    """float32 `[B]`: what the rule says of each row of this trainer's batch, such as a priority; only of rules that
    declare it (`Needs.gives_feedback`)."""
    publishes: bool = True
    """Whether policy servers shall act with the new parameters, equal on all trainers. An update that is not published
    counts as a version all the same, with which nobody acts."""


class Reducer(Protocol):
    """Sums over the policy's trainers; one trainer sums over itself."""

    trainers: int

    def sum(self, tensor: Tensor) -> Generator[None]:
        """Replaces `tensor` by its sum over all trainers; yields while the others are not ready."""


@dataclass(frozen=True)
class Context:
    """What an algorithm may use beside its settings and its policy."""

    reducer: Reducer
    device: torch.device
    autocast: torch.dtype | None
    """bfloat16 for the network's arithmetic, or None."""
    seed: int
    """Seed of this trainer; together with the version it gives all randomness of an update."""


class DivergedError(RuntimeError):
    """The loss or a gradient is not a number; the parameters are those before the update."""


class Algorithm(ABC):
    """One learning rule with its optimiser."""

    @abstractmethod
    def update(self, batch: Batch) -> Generator[None, None, Update]:
        """Learns from one batch; yields at least once between minibatches and while other trainers are awaited.

        Collective calls are the same in number and order on all trainers, whatever the data. Normaliser statistics take
        in the batch after the last epoch of its first use.

        Raises:
            DivergedError: the loss or the gradient norm is not finite on any trainer.
        """

    @abstractmethod
    def state(self) -> Mapping[str, Tensor]:
        """Optimiser state and whatever else the next update depends on, as named tensors."""

    @abstractmethod
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes back what `state` gave; raises ValueError if names or shapes differ."""
