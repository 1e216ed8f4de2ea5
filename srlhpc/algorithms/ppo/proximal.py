"""What a policy of now says of the actions of a whole batch, without gradients.

Letters: T records of a fragment (burn-in included), B columns.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.policies.contracts import ActorCriticPolicy


@torch.no_grad()
def log_probs_now(policy: ActorCriticPolicy, batch: Batch, parts: int) -> Tensor:
    """Log-probabilities of the batch's actions by the parameters of now, float32 `[T, B]`; 0 in burn-in.

    Args:
        policy: on the batch's device.
        batch: whole fragments; what is cut into chunks starts from their stored states, as in training.
        parts: columns are looked at in so many parts, for the sake of memory.
    """
    found = torch.zeros_like(batch.log_probs)
    for columns in torch.arange(found.shape[1], device=found.device).chunk(parts):
        for records, state in _stretches(batch, columns):
            masks = batch.action_masks
            said = policy.evaluate(
                {key: array[records].index_select(1, columns) for key, array in batch.observations.items()},
                state,
                batch.first[records].index_select(1, columns),
                action_masks=None if masks is None else masks[records].index_select(1, columns),
            )
            actions = batch.actions[records].index_select(1, columns)
            found[records, columns] = said.distribution.log_prob(actions).to(found.dtype)
    found[: batch.burn_in_steps] = 0.0
    return found


def _stretches(batch: Batch, columns: Tensor) -> Iterator[tuple[slice, dict[str, Tensor]]]:
    """Records that are looked at in one go, and the state before them."""
    states = [{name: rows.index_select(0, columns) for name, rows in batch.state.items()}]
    cuts = len(next(iter(batch.chunk_states.values()))) if batch.chunk_states else 0
    for chunk in range(cuts):
        states.append({name: rows[chunk].index_select(0, columns) for name, rows in batch.chunk_states.items()})
    length = len(batch.rewards) // len(states)
    for chunk, state in enumerate(states):
        yield slice(chunk * length, (chunk + 1) * length), state
