"""What a trainer learns from: the contract between a trainer and whatever gathers or draws its batches.

    waiting --(is_ready)--> choose --(next_batch)--> agreed --(full on all trainers)--> begin --(updated)--> end
                                                agreed --(stale on any)--> drop_stale --> waiting
                                                agreed --(full, nothing valid)--> skip_empty --> waiting

All trainers of a policy make the same calls of `choose`, `begin`, `drop_stale` and `skip_empty` in the same order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from srlhpc.algorithms.algorithm import Batch, Reducer
from srlhpc.rl.policy_lag import PolicyLag

Agree = Callable[..., Generator[None, None, list[float]]]
"""Sums of some numbers over the policy's trainers, each of which makes the same call."""


class AgreeingReducer(Reducer, Protocol):
    """A reducer that also agrees on small numbers (comm/process_group.py)."""

    def agree(self, flags: Sequence[float]) -> Generator[None, None, list[float]]:
        """Sums of each flag over the policy's trainers."""


class NextBatch(NamedTuple):
    """What one source has for the next update. Summed over all trainers, it tells whether and how the update is made.

    Flags are 0.0 or 1.0, so that their sum is the number of trainers for which they hold.
    """

    full: float
    """Whether the batch is whole."""
    stale: float
    """Whether the batch has become too old to be learnt from."""
    steps: float
    """Steps in the batch that count, however often they were used before."""
    valid: float
    """Valid records in the batch: agent steps."""
    new_steps: float
    """Steps, among `steps`, that no update has counted yet."""
    new_valid: float
    """Records, among `valid`, that no update has counted yet."""


class BatchSource(ABC):
    """Gathers or draws the batches of one trainer. Polled through `serve`; nothing else moves a message.

    A source shares the trainer's `Counters`: it reads the version and the trained steps there, and adds what it loses.
    """

    @abstractmethod
    def serve(self, *, updating: bool, starts: bool) -> bool:
        """Moves what comes in and goes out; true if anything did.

        Args:
            updating: an update is under way, whose batch must stay as it is.
            starts: actors may start further fragments.
        """

    @property
    @abstractmethod
    def is_ready(self) -> bool:
        """Whether this trainer could make an update."""

    @abstractmethod
    def choose(self, agree: Agree) -> Generator[None]:
        """Decides with the other trainers which batch the next update learns from."""

    @abstractmethod
    def next_batch(self) -> NextBatch:
        """What the next update would learn from."""

    @abstractmethod
    def begin(self) -> Batch:
        """The next batch, on the trainer's device; it does not change until `end`."""

    @abstractmethod
    def lag(self) -> PolicyLag:
        """The policy lag of the batch that was begun."""

    @abstractmethod
    def end(self, feedback: Tensor | None) -> None:
        """Takes in that an update was made of the batch, and what the rule says of its rows (`Update.feedback`)."""

    @abstractmethod
    def drop_stale(self) -> None:
        """Gives up the next batch, which is too old on some trainer."""

    @abstractmethod
    def skip_empty(self) -> None:
        """Gives up the next batch, which has no valid record on any trainer."""

    @abstractmethod
    def published(self, version: int) -> None:
        """Takes in that policy servers act with this version from now on."""

    @abstractmethod
    def relieve(self) -> None:
        """Nothing moves in the whole run: lets actors go on beyond every limit, and loses what has no room."""

    @abstractmethod
    def discard(self) -> None:
        """The run ends: throws away everything that still comes."""

    @property
    @abstractmethod
    def is_finished(self) -> bool:
        """Whether nothing comes any more."""

    @abstractmethod
    def forget(self, addresses: Collection[int]) -> None:
        """The roles at these addresses are dead."""

    @property
    @abstractmethod
    def is_fed(self) -> bool:
        """Whether anybody is alive who brings data."""

    @abstractmethod
    def waits_for(self) -> str:
        """What is missing for the next update, in words for people."""

    @abstractmethod
    def counters(self) -> dict[str, float]:
        """Counts of this attempt, for a report."""

    @abstractmethod
    def save_state(self) -> Mapping[str, Any]:
        """What an exact resume needs."""

    @abstractmethod
    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `save_state` gave."""

    @abstractmethod
    def close(self) -> None:
        """Cancels what is still expected."""
