"""What a batch says of its actions and states, before anything is learnt from it.

Letters: T records of a fragment, B columns.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.policies.contracts import ActorCriticPolicy
from srlhpc.rl.returns import gae


class Estimates(NamedTuple):
    """In units of the return, float32 `[T, B]` each."""

    advantages: Tensor
    values: Tensor
    """Values by the behaviour policy."""

    @property
    def returns(self) -> Tensor:
        """What values are to become."""
        return self.advantages + self.values


def estimates(policy: ActorCriticPolicy, batch: Batch, *, gamma: float, gae_lambda: float) -> Estimates:
    """GAE on the behaviour policy's values; only the bootstrap is computed now."""
    steps, columns = batch.rewards.shape
    last = policy.act(
        batch.observations_at(steps * columns + torch.arange(columns, device=batch.rewards.device)),
        batch.final_state,
        batch.first[steps],
        action_masks=None if batch.action_masks is None else batch.action_masks[steps],
        generator=None,
    )
    values = policy.return_values(batch.outputs["value"])
    last_values = policy.return_values(last.outputs["value"])
    next_values = torch.cat([values[1:], last_values.unsqueeze(0)])
    cut = batch.fields.get("cut")
    if cut is not None:
        next_values = torch.where(cut, last_values, next_values)
    advantages = gae(
        batch.rewards,
        values,
        next_values,
        batch.terminated,
        batch.truncated,
        gamma=gamma,
        lambda_=gae_lambda,
    )
    return Estimates(advantages, values)
