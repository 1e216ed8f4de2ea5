"""How often a policy takes each action, for what it sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from srlhpc.league.payoffs import FloatArray
from srlhpc.policies.policy import Policy


@torch.no_grad()
def chances(network: Any, observations: Mapping[str, Tensor], masks: Tensor | None) -> FloatArray:
    """Float64 `[N, K]` for N observations and K discrete actions; one that takes the best action has ones and zeros."""
    rows = len(next(iter(observations.values())))
    first = torch.ones(rows, dtype=torch.bool)
    if hasattr(network, "evaluate"):
        found = network.evaluate(
            {key: values[None] for key, values in observations.items()},
            network.initial_state(rows),
            first[None],
            action_masks=None if masks is None else masks[None],
        )
        choices = network.kind.actions.choices
        each = torch.arange(choices)[:, None, None].expand(choices, 1, rows)
        return torch.stack([found.distribution.log_prob(action)[0] for action in each], -1).exp().double().numpy()
    taken = _best(network, observations, first, masks)
    return torch.nn.functional.one_hot(taken, network.kind.actions.choices).double().numpy()


def _best(network: Policy, observations: Mapping[str, Tensor], first: Tensor, masks: Tensor | None) -> Tensor:
    state = network.initial_state(len(first))
    return network.act(observations, state, first, action_masks=masks, generator=None).actions
