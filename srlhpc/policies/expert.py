"""What an expert says of rows that another policy acts for, and how often it acts in its place.

Letters: N rows (agents that act now).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from srlhpc.policies.policy import Acted, Policy
from srlhpc.specs.contracts import EXPERT_ACTION


def advice(expert: Policy, observations: Mapping[str, Tensor], first: Tensor, *, action_masks: Tensor | None) -> Tensor:
    """The most probable actions of an expert without memory, `[N, ...]`; arguments are those of `Policy.act`."""
    return expert.act(observations, {}, first, action_masks=action_masks, generator=None).actions


def labelled(acted: Acted, by_expert: Tensor, shares: Tensor, generator: torch.Generator) -> Acted:
    """What was acted, with the expert's actions as an output, which are played instead in some rows.

    A row plays the expert's with the probability beta of Ross et al. 2011 (section 3.6; arXiv:1011.0686), drawn at
    every step. Such an action was certain: its log-probability is 0.

    Args:
        acted: by the policy that learns.
        by_expert: actions, `[N, ...]`.
        shares: beta, float32 `[N]`.
        generator: of the device of the rows.
    """
    plays = torch.rand(len(shares), generator=generator, device=shares.device) < shares
    over_parts = plays.reshape(-1, *[1] * (by_expert.ndim - 1))
    return acted._replace(
        actions=torch.where(over_parts, by_expert, acted.actions),
        log_probs=acted.log_probs.masked_fill(plays, 0.0),
        outputs={**acted.outputs, EXPERT_ACTION: by_expert},
    )
