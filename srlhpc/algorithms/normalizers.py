"""Running statistics of a policy take in the records of an update."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from torch import Tensor

from srlhpc.algorithms.algorithm import Reducer
from srlhpc.policies.contracts import ActorCriticPolicy


def take_in(
    policy: ActorCriticPolicy, observations: Mapping[str, Tensor], returns: Tensor, valid: Tensor, reducer: Reducer
) -> Generator[None]:
    """Moves what the policy normalises by, if it does, by the records of all trainers: one collective call then.

    Args:
        policy: equal on all trainers.
        observations: key to `[T, B, ...]`, raw; at least the policy's `normalized_observations`.
        returns: float32 `[T, B]`, value targets in units of the return.
        valid: bool `[T, B]`; other records count in nothing.
        reducer: sums over trainers.
    """
    sums = policy.normalizer_sums(observations, returns, valid)
    if len(sums):
        yield from reducer.sum(sums)
        policy.update_normalizers(sums)
