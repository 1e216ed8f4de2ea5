"""What a policy of now says of the actions of a whole batch, without gradients.

Letters: T records of a fragment (burn-in included), B columns.
"""

from __future__ import annotations

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.algorithms.ppo.minibatches import Rows, sampler, seen
from srlhpc.policies.contracts import ActorCriticPolicy


@torch.no_grad()
def log_probs_now(policy: ActorCriticPolicy, batch: Batch, parts: int) -> Tensor:
    """Log-probabilities of the batch's actions by the parameters of now, float32 `[T, B]`; 0 in burn-in.

    Args:
        policy: on the batch's device.
        batch: whole fragments; what is cut into chunks starts from their stored states, as in training. Those without
            a valid record are left out, and have 0.
        parts: they are looked at in so many parts, for the sake of memory.
    """
    found = torch.zeros_like(batch.log_probs)
    shares = sampler(batch, parts)
    for indices in shares.in_order():
        selected = shares.take(indices)
        rows = Rows(**seen(batch, selected))
        said = policy.evaluate(rows.observations, rows.state, rows.first, action_masks=rows.action_masks)
        selected.put(said.distribution.log_prob(selected.of(batch.actions)).to(found.dtype), found)
    found[: batch.burn_in_steps] = 0.0
    return found
