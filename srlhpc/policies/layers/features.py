"""From what a torso gives to what a head takes: through memory and a norm, where a network has them.

Letters: N rows, T records of a fragment, B columns, F features.
"""

from __future__ import annotations

from torch import Tensor, nn

from srlhpc.policies.layers.recurrent import Memory
from srlhpc.policies.policy import State


def step(features: Tensor, memory: Memory | None, state: State, first: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Features of one step, `[N, F]`, and the memory's new state."""
    if memory is None:
        return features, {}
    new_state = memory.step(features, state, first)
    return new_state["h"], new_state


def scan(features: Tensor, memory: Memory | None, state: State, first: Tensor) -> Tensor:
    """Features of a whole fragment, `[T, B, F]`, of `[T * B, F]`; rows stay rows without memory."""
    if first.ndim > 1:
        features = features.reshape(*first.shape, -1)
    return features if memory is None else memory(features, state, first)


def normed(norm: nn.Module | None, features: Tensor) -> Tensor:
    """Features behind a norm, or as they are."""
    if norm is None:
        return features
    found: Tensor = norm(features)
    return found
